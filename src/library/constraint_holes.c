// The holes of a grammar as values: what fills them is asked of the program.
#include <stdlib.h>

#include "eval/invoke.h"
#include "library/constraint_handle.h"
#include "reason/reason.h"
#include "value/builtin.h"
#include "value/convert.h"
#include "value/items.h"
#include "value/print.h"

// What fills the holes of a grammar: relations of one column, or functions that give lists.
typedef struct ValueFiller {
    Filler head;
    Interp *interp;
    Value *values; // one a hole; where the collector looks
} ValueFiller;

static void filler_release(Filler *filler) {
    ValueFiller *own = (ValueFiller *)filler;
    for (uint32_t i = 0; i < filler->count; i++) {
        value_release(own->values[i]);
        free((void *)(uintptr_t)filler->names[i]);
    }
    heap_free(own->values);
    free((void *)(uintptr_t)filler->names);
    free(own);
}

static uint64_t filler_version(Filler *filler) {
    return reasoner_get(((ValueFiller *)filler)->interp)->store->version;
}

static Status fail_filler(const Filler *filler, uint32_t hole, Value value) {
    fail(STATUS_TYPE, "the hole %s cannot be filled with %s", filler->names[hole],
         value_text(value).text);
    return fail_help("texts, numbers, and answers with one variable fill holes");
}

// A text or a number, or an answer to a query about one of them.
static Status filler_text(const Filler *filler, uint32_t hole, Value value, Text *out) {
    bool answer = value.kind == VALUE_STRUCT && value.as.instance->type->field_count == 1;
    Value inner = answer ? value.as.instance->fields[0] : value;
    bool fits = inner.kind == VALUE_STRING || inner.kind == VALUE_INT || inner.kind == VALUE_FLOAT;
    if (!fits) return fail_filler(filler, hole, value);
    TRY(value_print(inner, false, out));
    if (out->length > 0) return STATUS_OK;
    return fail(STATUS_VALUE, "a text of the hole %s is empty", filler->names[hole]);
}

static Status filler_fill(Filler *filler, uint32_t hole,
                          void (*add)(void *context, const char *bytes, size_t length),
                          void *context) {
    const ValueFiller *own = (const ValueFiller *)filler;
    Value source = value_retain(own->values[hole]);
    if (source.kind == VALUE_FUNCTION) {
        Value given = interp_call(own->interp, source, NULL, 0);
        value_release(source);
        source = given;
        if (failed(given)) return error_current()->code;
    }
    SCOPED_VALUE(items) = value_to_items(source, "what fills a hole");
    value_release(source);
    if (failed(items)) return error_current()->code;
    Status status = STATUS_OK;
    for (size_t i = 0; i < items.as.list->count && status == STATUS_OK; i++) {
        SCOPED_TEXT(text);
        status = filler_text(filler, hole, items.as.list->items[i], &text);
        if (status == STATUS_OK) add(context, text_get(&text), text.length);
    }
    return status;
}

static const FillerType value_filler = {
    .release = filler_release, .version = filler_version, .fill = filler_fill};

static Status check_holes(const Dict *holes) {
    for (size_t i = 0; i < dict_count(holes); i++) {
        Value name, value;
        dict_entry(holes, i, &name, &value);
        if (name.kind != VALUE_STRING) return fail_kind("the name of a hole", "a string", name);
        bool fits = value.kind == VALUE_FUNCTION || value.kind == VALUE_LIST ||
                    (value.kind == VALUE_HANDLE && value.as.handle->type == &handle_relation);
        if (!fits) return fail_kind("what fills a hole", "a relation, a list or a function", value);
    }
    return STATUS_OK;
}

Status filler_new(Interp *interp, const Dict *holes, Filler **out) {
    TRY(check_holes(holes));
    uint32_t count = (uint32_t)dict_count(holes);
    ValueFiller *filler = memory_allocate_zeroed(1, sizeof *filler);
    const char **names = memory_allocate_zeroed(count + 1, sizeof *names);
    filler->head = (Filler){&value_filler, names, count};
    filler->interp = interp;
    filler->values = heap_allocate_rooted((count + 1) * sizeof *filler->values);
    for (uint32_t i = 0; i < count; i++) {
        Value name, value;
        dict_entry(holes, i, &name, &value);
        names[i] = memory_copy_string(name.as.string->bytes, name.as.string->length);
        filler->values[i] = value_retain(value);
    }
    *out = &filler->head;
    return STATUS_OK;
}
