// load_onnx of a build without it (cmake/onnx.cmake).
#include "value/builtin.h"

Value builtin_load_onnx(BuiltinCall *call) {
    (void)call;
    (void)fail(STATUS_DEVICE, "this tl was built without load_onnx");
    (void)fail_help("build it where libprotobuf-c-dev is installed");
    return value_fail();
}
