# load_onnx: libprotobuf-c's headers are needed to build it, the library when it is called. Where they are
# missing, or with TL_ONNX=OFF, tl is built without it.
option(TL_ONNX "Read .onnx files, where libprotobuf-c's headers are" ON)
pkg_check_modules(PROTOBUF_C libprotobuf-c)
if(TL_ONNX AND PROTOBUF_C_FOUND)
    target_sources(tl_model PRIVATE src/model/onnx.c)
    target_sources(tl_library PRIVATE src/library/builtin_onnx.c)
    target_include_directories(tl_model PRIVATE ${PROTOBUF_C_INCLUDE_DIRS})
    target_include_directories(tl_library PRIVATE ${PROTOBUF_C_INCLUDE_DIRS})
else()
    message(STATUS "Without load_onnx")
    target_sources(tl_library PRIVATE src/library/onnx_absent.c)
endif()
