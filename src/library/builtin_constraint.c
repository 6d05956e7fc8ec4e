// Constraints: what generate's answer must look like.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/bind.h"
#include "generate/grammar.h"
#include "generate/json_schema.h"
#include "library/constraint_handle.h"
#include "value/builtin.h"
#include "value/convert.h"

static void constraint_payload_release(void *payload) {
    ConstraintHandle *handle = payload;
    constraint_release(handle->constraint);
    free(handle->trigger);
    free(handle);
}

const HandleType handle_constraint = {.name = "constraint", .release = constraint_payload_release};

typedef Status (*Compile)(const char *text, size_t length, Constraint **out);

static Status check_after(Value after) {
    bool empty = after.kind == VALUE_STRING && after.as.string->length == 0;
    return empty ? fail(STATUS_VALUE, "after must be a string that is not empty") : STATUS_OK;
}

static Value handle_value(Constraint *constraint, Value after) {
    ConstraintHandle *handle = memory_allocate_zeroed(1, sizeof *handle);
    handle->constraint = constraint;
    if (after.kind == VALUE_STRING)
        handle->trigger = memory_copy_string(after.as.string->bytes, after.as.string->length);
    return value_handle(&handle_constraint, handle);
}

static Value constraint_value(const BuiltinCall *call, const String *text, Compile compile) {
    Constraint *constraint;
    TRY_VALUE(check_after(call->arguments[1]));
    TRY_VALUE(compile(text->bytes, text->length, &constraint));
    return handle_value(constraint, call->arguments[1]);
}

Value builtin_grammar(BuiltinCall *call) {
    const String *text = call->arguments[0].as.string;
    Value after = call->arguments[1], holes = call->arguments[2];
    Constraint *constraint;
    Filler *filler = NULL;
    TRY_VALUE(check_after(after));
    if (holes.kind == VALUE_DICT) TRY_VALUE(filler_new(call->interp, holes.as.dict, &filler));
    TRY_VALUE(constraint_from_gbnf(text->bytes, text->length, filler, &constraint));
    return handle_value(constraint, after);
}

Value builtin_regex(BuiltinCall *call) {
    return constraint_value(call, call->arguments[0].as.string, constraint_from_regex);
}

// A dictionary as JSON writes it, or the text of JSON itself.
Value builtin_json_schema(BuiltinCall *call) {
    Value schema = call->arguments[0];
    if (schema.kind == VALUE_STRING)
        return constraint_value(call, schema.as.string, constraint_from_schema);
    Value text =
        interp_call_builtin(call->interp, catalog_find("to_json", strlen("to_json")), &schema, 1);
    if (text.kind == VALUE_FAIL) return text;
    return constraint_value(call, string_end(text.as.string), constraint_from_schema);
}
