#include "library/pass.h"

#include <stdlib.h>

#include "eval/page.h"
#include "model/model.h"
#include "tensor/compose.h"
#include "tensor/view.h"
#include "value/builtin.h"

enum { ROWS_MAX = 256 }; // that go through the layers at once

static Status read_context(const Model *model, const char *architecture, int64_t *out) {
    Text key = {0};
    text_format(&key, "%s.context_length", architecture);
    const GgufValue *value = gguf_find(model_file(model), text_get(&key));
    bool integer = value && value->type != GGUF_STRING && value->type != GGUF_ARRAY &&
                   value->type != GGUF_FLOAT32 && value->type != GGUF_FLOAT64;
    *out = integer ? value->as.integer : 0;
    Status status = !value || *out > 0 ? STATUS_OK
                                       : fail(STATUS_VALUE, "metadata %s of %s is not a count",
                                              text_get(&key), model_path(model));
    text_free(&key);
    return status;
}

Status pass_open(Interp *interp, Value model, Pass *out) {
    const Model *file = model.as.handle->payload;
    const GgufValue *name = gguf_find(model_file(file), "general.architecture");
    Text architecture = {0};
    if (!name || name->type != GGUF_STRING)
        return fail(STATUS_KEY, "%s does not say its architecture: metadata general.architecture",
                    model_path(file));
    text_append(&architecture, name->as.string.bytes, name->as.string.length);
    *out = (Pass){.interp = interp, .opened = value_none()};
    Status status = page_open(interp, text_get(&architecture), model, &out->opened);
    if (status == STATUS_OK) status = read_context(file, text_get(&architecture), &out->context);
    text_free(&architecture);
    return status;
}

void pass_close(Pass *pass) {
    if (pass->interp) value_release(pass->opened);
}

static Status call(const Pass *pass, const char *method, Tensor *x, Tensor **out) {
    Value argument = value_tensor(tensor_retain(x));
    Status status = page_call(pass->interp, pass->opened, method, argument, out);
    value_release(argument);
    return status;
}

static Status forward(Pass *pass, const int64_t *ids, size_t count, Tensor **out) {
    Shape shape = {.rank = 1, .dims = {(int64_t)count}};
    SCOPED_TENSOR(tensor);
    TRY(tensor_from_integers(ids, &shape, DTYPE_INT64, &tensor));
    pass->position += (int64_t)count;
    return call(pass, "forward", tensor, out);
}

// A long text goes through in parts: no operation takes long, and none needs much memory.
Status pass_advance(Pass *pass, const int64_t *ids, size_t count, Tensor **out) {
    ASSERT(count > 0);
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(last);
    SCOPED_TENSOR(logits);
    for (size_t done = 0; done < count; done += ROWS_MAX) {
        size_t rows = count - done < ROWS_MAX ? count - done : ROWS_MAX;
        tensor_release(x);
        x = NULL;
        TRY(forward(pass, ids + done, rows, &x));
    }
    TRY(tensor_slice(x, 0, -1, INT64_MAX, 1, &last));
    TRY(call(pass, "logits", last, &logits));
    return tensor_select(logits, 0, -1, out);
}

static Status forward_all(BuiltinCall *builtin, Tensor **out) {
    Pass pass = {0};
    int64_t *ids = NULL;
    size_t count = 0;
    SCOPED_TENSOR(x);
    Status status = value_to_ints(builtin->arguments[1], "ids", &ids, &count);
    if (status == STATUS_OK && count == 0)
        status = fail(STATUS_VALUE, "forward needs at least one id");
    if (status == STATUS_OK) status = pass_open(builtin->interp, builtin->arguments[0], &pass);
    if (status == STATUS_OK) status = forward(&pass, ids, count, &x);
    if (status == STATUS_OK) status = call(&pass, "logits", x, out);
    pass_close(&pass);
    free(ids);
    return status;
}

Value builtin_model_forward(BuiltinCall *builtin) {
    Tensor *logits = NULL;
    return forward_all(builtin, &logits) == STATUS_OK ? value_tensor(logits) : value_fail();
}
