// Arguments to parameters: overloads by kind, names, defaults, rest parameters, and the errors.
#include "eval/bind.h"

#include <stdio.h>
#include <string.h>

#include "base/aside.h"
#include "device/foretell.h"
#include "eval/call_op.h"
#include "eval/numbers.h"
#include "value/convert.h"
#include "value/print.h"

static const BuiltinFunction functions[FUNCTION_COUNT] = {
#define FUNCTION(id, signature, section, doc) [FUNCTION_##id] = builtin_##id,
#include "catalog/functions.def"
#undef FUNCTION
};

// What a kind of parameter takes. `exact` kinds choose among overloads first; the others are what
// converts to it.
#define KIND(kind) (1u << VALUE_##kind)
typedef struct Acceptance {
    const char *wanted; // for messages
    uint32_t exact, also;
    const char *handle; // type name of the handle that is meant
} Acceptance;

static const Acceptance acceptance[] = {
    [PARAM_ANY] = {"a value", ~0u, 0, NULL},
    [PARAM_TENSOR] = {"a tensor", KIND(TENSOR),
                      KIND(INT) | KIND(FLOAT) | KIND(BOOL) | KIND(LIST) | KIND(TUPLE) | KIND(RANGE),
                      NULL},
    [PARAM_TENSORS] = {"a list of tensors", KIND(LIST) | KIND(TUPLE), KIND(TENSOR), NULL},
    [PARAM_NUMBER] = {"a number", KIND(INT) | KIND(FLOAT), KIND(TENSOR), NULL},
    [PARAM_INT] = {"an integer", KIND(INT), KIND(FLOAT) | KIND(TENSOR), NULL},
    [PARAM_BOOL] = {"a bool", KIND(BOOL), KIND(TENSOR), NULL},
    [PARAM_STRING] = {"a string", KIND(STRING), 0, NULL},
    [PARAM_SHAPE] = {"a list of integers", KIND(LIST) | KIND(TUPLE) | KIND(RANGE) | KIND(TENSOR),
                     KIND(INT) | KIND(FLOAT), NULL},
    [PARAM_INTS] = {"an integer or a list of them",
                    KIND(INT) | KIND(LIST) | KIND(TUPLE) | KIND(RANGE) | KIND(TENSOR), KIND(FLOAT),
                    NULL},
    [PARAM_LIST] = {"a list", KIND(LIST) | KIND(TUPLE), 0, NULL},
    [PARAM_DICT] = {"a dictionary", KIND(DICT), 0, NULL},
    [PARAM_FUNCTION] = {"a function", KIND(FUNCTION) | KIND(BUILTIN), KIND(TYPE) | KIND(DTYPE),
                        NULL},
    [PARAM_DTYPE] = {"a dtype", KIND(DTYPE), KIND(STRING) | KIND(BUILTIN), NULL},
    [PARAM_DEVICE] = {"the name of a device", KIND(STRING), 0, NULL},
    [PARAM_MODEL] = {"a model", 0, 0, "model"},
    [PARAM_TOKENIZER] = {"a tokenizer", 0, 0, "tokenizer"},
    [PARAM_CACHE] = {"a KV cache", 0, 0, "KVCache"},
    [PARAM_BUFFER] = {"a tensor buffer", 0, 0, "buffer"},
    [PARAM_OPTIMIZER] = {"an optimizer", 0, 0, "optimizer"},
};

static bool tensor_suits(const Param *param, const Tensor *tensor, bool exact) {
    int rank = tensor_rank(tensor);
    DTypeKind kind = dtype_kind(tensor_dtype(tensor));
    switch (param->kind) {
    case PARAM_NUMBER: return rank == 0;
    case PARAM_INT: return rank == 0;
    case PARAM_BOOL: return rank == 0 && kind == DTYPE_KIND_BOOL;
    case PARAM_SHAPE:
    case PARAM_INTS: return rank <= 1 && (!exact || kind == DTYPE_KIND_INT);
    default: return true;
    }
}

static bool accepts(const Param *param, Value value, bool exact) {
    const Acceptance *takes = &acceptance[param->kind];
    if (value.kind == VALUE_NONE && param->default_kind == DEFAULT_ABSENT) return true;
    if (takes->handle)
        return value.kind == VALUE_HANDLE &&
               strcmp(value.as.handle->type->name, takes->handle) == 0;
    if (param->kind == PARAM_FUNCTION && value.kind == VALUE_HANDLE)
        return value.as.handle->type->call != NULL;
    if (param->kind == PARAM_DEVICE && value.kind == VALUE_STRING &&
        dtype_find(value.as.string->bytes, value.as.string->length, &(DType){0}))
        return false; // x.to("float16") is the other form
    if (param->kind == PARAM_TENSOR && value_is_handle_tensor(value)) return true;
    uint32_t bit = 1u << value.kind;
    if (!(bit & (exact ? takes->exact : takes->exact | takes->also)))
        return value.kind == VALUE_MEASURED &&
               accepts(param, (Value){.kind = value.as.measured.kind}, exact);
    // A one-element tensor is a number wherever one is wanted, but not for choosing among forms.
    return value.kind != VALUE_TENSOR || tensor_suits(param, value.as.tensor, exact);
}

// --- which value goes where

// The values as they fall on the parameters of one signature, before any conversion.
typedef struct Placement {
    Value values[PARAMETERS_MAX]; // ABSENT: not given
    const Value *rest;
    size_t rest_count;
} Placement;

typedef enum PlaceResult {
    PLACE_OK,
    PLACE_TOO_MANY,
    PLACE_UNKNOWN,
    PLACE_TWICE,
    PLACE_MISSING
} PlaceResult;

static void place_rest(const Signature *signature, const BuiltinArguments *a, int index,
                       Placement *out) {
    ASSERT(index >= 0 && index < signature->count && signature->params[index].rest);
    size_t first = (size_t)index;
    if (a->count <= first) return;
    out->rest = a->positional + first;
    out->rest_count = a->count - first;
    // concat(a, b, 1): a plain int at the end is the whole-number parameter that follows.
    if (index + 1 >= signature->count || out->rest_count < 2) return;
    if (signature->params[index].kind != PARAM_TENSOR) return;
    const Value *last = &a->positional[a->count - 1];
    if (signature->params[index + 1].kind != PARAM_INT || last->kind != VALUE_INT) return;
    out->values[index + 1] = *last;
    out->rest_count--;
}

// *at: the parameter or the argument that the result is about.
static PlaceResult place(const Signature *signature, const BuiltinArguments *a, Placement *out,
                         size_t *at) {
    ASSERT(signature->count >= 0 && signature->count <= PARAMETERS_MAX);
    out->rest = NULL;
    out->rest_count = 0;
    for (int i = 0; i < signature->count; i++) out->values[i] = value_absent();
    int fixed = 0;
    while (fixed < signature->count && !signature->params[fixed].rest) fixed++;
    bool has_rest = fixed < signature->count;
    if (!has_rest && a->count > (size_t)fixed) return PLACE_TOO_MANY;
    for (size_t i = 0; i < a->count && i < (size_t)fixed; i++) out->values[i] = a->positional[i];
    if (has_rest) place_rest(signature, a, fixed, out);
    for (size_t i = 0; i < a->named_count; i++) {
        int index = catalog_parameter(signature, a->names[i]);
        *at = i;
        if (index < 0 || signature->params[index].rest) return PLACE_UNKNOWN;
        if (out->values[index].kind != VALUE_ABSENT) return PLACE_TWICE;
        out->values[index] = a->named[i];
    }
    for (int i = 0; i < signature->count; i++) {
        const Param *param = &signature->params[i];
        *at = (size_t)i;
        bool given = out->values[i].kind != VALUE_ABSENT || param->rest;
        if (!given && param->default_kind == DEFAULT_REQUIRED) return PLACE_MISSING;
    }
    return PLACE_OK;
}

// Index of the first parameter that does not take its value, or -1.
static int find_misfit(const Signature *signature, const Placement *placed, bool exact) {
    for (int i = 0; i < signature->count; i++) {
        const Param *param = &signature->params[i];
        if (placed->values[i].kind != VALUE_ABSENT && !accepts(param, placed->values[i], exact))
            return i;
        for (size_t j = 0; param->rest && j < placed->rest_count; j++)
            if (!accepts(param, placed->rest[j], exact)) return i;
    }
    return -1;
}

// --- errors

static void list_parameters(const Signature *signature, int first, Text *out) {
    for (int i = first; i < signature->count; i++)
        text_format(out, i > first ? ", %s" : "%s", signature->params[i].name);
}

static void fail_too_many(const Signature *signature, const BuiltinArguments *a) {
    SCOPED_TEXT(names);
    int receiver = strchr(signature->name, '.') != NULL; // of a method: it is not counted
    list_parameters(signature, receiver, &names);
    size_t given = a->count + a->named_count - (size_t)receiver;
    int most = signature->count - receiver;
    if (most == 0)
        fail(STATUS_ARITY, "%s takes no arguments, but %zu %s given", signature->name, given,
             given == 1 ? "was" : "were");
    else
        fail(STATUS_ARITY, "%s takes at most %d argument%s (%s), but %zu were given",
             signature->name, most, most == 1 ? "" : "s", text_get(&names), given);
}

// zeros(n, m), x.expand(2, 3): integers in several arguments where one list is wanted.
static bool suggest_list(const Signature *signature, const Value *values, size_t count) {
    int at = catalog_sizes_parameter(signature);
    if (at < 0) return false;
    SCOPED_TEXT(list);
    for (size_t i = (size_t)at; i < count && values[i].kind == VALUE_INT; i++)
        text_format(&list, list.length ? ", %lld" : "%lld", (long long)values[i].as.integer);
    bool several = strchr(text_get(&list), ',') != NULL;
    if (several)
        fail_help("`%s` is one argument: [%s]", signature->params[at].name, text_get(&list));
    return several;
}

static void fail_place(const Builtin *row, const BuiltinArguments *a, PlaceResult result,
                       size_t at) {
    ASSERT(result != PLACE_OK);
    const Signature *signature = &row->signature;
    const char *nearest = NULL;
    if (result == PLACE_TOO_MANY) fail_too_many(signature, a);
    if (result == PLACE_MISSING)
        fail(STATUS_ARITY, "%s: the argument `%s` is missing", signature->name,
             signature->params[at].name);
    if (result == PLACE_TWICE)
        fail(STATUS_ARITY, "%s: `%s` is given twice, by position and by name", signature->name,
             a->names[at]);
    if (result == PLACE_UNKNOWN) {
        const char *names[PARAMETERS_MAX];
        for (int i = 0; i < signature->count; i++) names[i] = signature->params[i].name;
        nearest = catalog_nearest(a->names[at], names, (size_t)signature->count);
        fail(STATUS_ARITY, "%s has no parameter `%s`", signature->name, a->names[at]);
    }
    if (result == PLACE_TOO_MANY && suggest_list(signature, a->positional, a->count)) return;
    if (nearest)
        fail_help("did you mean `%s`? %s", nearest, row->signature_text);
    else
        fail_help("%s", row->signature_text);
}

static void fail_misfit(const Builtin *row, const Placement *placed, int index) {
    ASSERT(index >= 0); // choose found no other reason
    const Signature *signature = &row->signature;
    const Param *param = &signature->params[index];
    Value value = placed->values[index];
    for (size_t i = 0; param->rest && i < placed->rest_count; i++) {
        value = placed->rest[i];
        if (!accepts(param, value, false)) break;
    }
    char what[80];
    snprintf(what, sizeof what, "%s: %s", signature->name, param->name);
    fail_kind(what, acceptance[param->kind].wanted, value);
    bool later = index > catalog_sizes_parameter(signature);
    if (!later || !suggest_list(signature, placed->values, (size_t)signature->count))
        fail_help("%s", row->signature_text);
}

// None of several forms takes these arguments: says what was given and shows the forms.
static void fail_forms(const Builtin *row, const BuiltinArguments *a) {
    SCOPED_TEXT(given);
    SCOPED_TEXT(forms);
    for (size_t i = 0; i < a->count; i++)
        text_format(&given, i ? ", %s" : "%s", value_text(a->positional[i]).text);
    for (size_t i = 0; i < a->named_count; i++)
        text_format(&given, i + a->count ? ", %s: %s" : "%s: %s", a->names[i],
                    value_text(a->named[i]).text);
    for (const Builtin *form = row; form; form = form->next_overload)
        text_format(&forms, form == row ? "%s" : " or %s", form->signature_text);
    fail(STATUS_TYPE, "%s does not take (%s)", row->signature.name, text_get(&given));
    fail_help("%s", text_get(&forms));
}

// --- choosing and binding

static Status fail_binding(const Builtin *row, const BuiltinArguments *a) {
    const Builtin *fitting = NULL;
    int fitting_count = 0, forms = 0;
    Placement placed;
    size_t at;
    for (const Builtin *form = row; form; form = form->next_overload, forms++) {
        if (place(&form->signature, a, &placed, &at) != PLACE_OK) continue;
        fitting = form;
        fitting_count++;
    }
    if (fitting_count == 1) {
        place(&fitting->signature, a, &placed, &at);
        fail_misfit(fitting, &placed, find_misfit(&fitting->signature, &placed, false));
    } else if (forms == 1) {
        fail_place(row, a, place(&row->signature, a, &placed, &at), at);
    } else {
        fail_forms(row, a);
    }
    return error_current()->code;
}

// The first form whose parameters take the kinds exactly, else the first that can convert them.
static Status choose(const Builtin *row, const BuiltinArguments *a, const Builtin **out,
                     Placement *placed) {
    size_t at;
    for (int exact = row->next_overload ? 1 : 0; exact >= 0; exact--) {
        for (const Builtin *form = row; form; form = form->next_overload) {
            if (place(&form->signature, a, placed, &at) != PLACE_OK) continue;
            if (find_misfit(&form->signature, placed, exact) >= 0) continue;
            *out = form;
            return STATUS_OK;
        }
    }
    return fail_binding(row, a);
}

static Value default_value(const Param *param) {
    ASSERT(param->default_kind != DEFAULT_REQUIRED);
    switch (param->default_kind) {
    case DEFAULT_INT: return value_int(param->fallback.integer);
    case DEFAULT_FLOAT: return value_float(param->fallback.number);
    case DEFAULT_BOOL: return value_bool(param->fallback.boolean);
    case DEFAULT_STRING: return value_cstring(param->fallback.string);
    case DEFAULT_REQUIRED:
    case DEFAULT_ABSENT: break;
    }
    return value_absent();
}

// Brings an argument to the one form that builtins see: integers as int, dtypes as dtype.
static Status normalize(const Signature *signature, const Param *param, Value *value) {
    static const uint8_t normal_kinds[PARAM_OPTIMIZER + 1] = {
        [PARAM_INT] = VALUE_INT, [PARAM_BOOL] = VALUE_BOOL, [PARAM_DTYPE] = VALUE_DTYPE};
    uint8_t normal = normal_kinds[param->kind]; // 0: any kind stays as it is
    if (!normal || value->kind == normal || value->kind == VALUE_ABSENT) return STATUS_OK;
    char what[80];
    snprintf(what, sizeof what, "%s: %s", signature->name, param->name);
    if (normal == VALUE_INT) {
        int64_t number;
        TRY(value_to_int(*value, what, &number));
        *value = value_int(number);
    } else if (normal == VALUE_BOOL) {
        bool flag;
        TRY(value_to_bool(*value, what, &flag));
        *value = value_bool(flag);
    } else {
        DType dtype;
        TRY(value_to_dtype(*value, what, &dtype));
        *value = (Value){.kind = VALUE_DTYPE, .as.integer = dtype};
    }
    return STATUS_OK;
}

// An argument, or the default where there is none; `none` is as good as nothing.
static Value or_default(const Param *param, Value value) {
    bool none = value.kind == VALUE_NONE && param->default_kind == DEFAULT_ABSENT &&
                param->kind != PARAM_ANY;
    return none || value.kind == VALUE_ABSENT ? default_value(param) : value;
}

static bool is_name_with_nul(const Param *param, Value value) {
    if (value.kind != VALUE_STRING) return false;
    const String *string = string_end(value.as.string);
    return param->named && strlen(string->bytes) < string->length;
}

static Status bind(const Builtin *form, const Placement *placed, BuiltinCall *call) {
    const Signature *signature = &form->signature;
    for (int i = 0; i < signature->count; i++) {
        const Param *param = &signature->params[i];
        Value value = or_default(param, placed->values[i]);
        TRY(normalize(signature, param, &value));
        if (is_name_with_nul(param, value))
            return fail(STATUS_VALUE, "%s: %s is %s, and a name has no \\0 in it", signature->name,
                        param->name, value_text(value).text);
        call->arguments[i] = value;
    }
    call->row = form;
    call->rest = placed->rest;
    call->rest_count = placed->rest_count;
    return STATUS_OK;
}

// Whether a parameter takes a value that is there as it is.
static bool takes_plainly(const Param *param, Value value) {
    const Acceptance *takes = &acceptance[param->kind];
    if (takes->handle) return accepts(param, value, true);
    if (param->kind == PARAM_DEVICE || !(takes->exact & 1u << value.kind)) return false;
    if (value.kind == VALUE_TENSOR) return param->kind == PARAM_ANY || param->kind == PARAM_TENSOR;
    return !is_name_with_nul(param, value);
}

// The commonest call: arguments by position of just the kinds that the only form wants. False: the
// general way finds out what they are.
static bool bind_plain(const Builtin *row, const BuiltinArguments *a, BuiltinCall *call) {
    const Signature *signature = &row->signature;
    if (row->kind == ROW_OP || row->next_overload || a->named_count > 0) return false;
    if (a->count > (size_t)signature->count) return false;
    for (size_t i = 0; i < (size_t)signature->count; i++) {
        const Param *param = &signature->params[i];
        Value given = i < a->count ? a->positional[i] : value_absent();
        if (param->rest) return false;
        if (given.kind == VALUE_ABSENT && param->default_kind == DEFAULT_REQUIRED) return false;
        Value value = or_default(param, given);
        bool defaults = value.kind == VALUE_ABSENT || given.kind == VALUE_ABSENT;
        if (defaults ? normalize(signature, param, &value) != STATUS_OK
                     : !takes_plainly(param, value))
            return false;
        call->arguments[i] = value;
    }
    call->row = row;
    call->rest = NULL;
    call->rest_count = 0;
    return true;
}

Value builtin_invoke(Interp *interp, const Builtin *row, const BuiltinArguments *arguments) {
    Value result;
    BuiltinCall call;
    if (bind_plain(row, arguments, &call)) {
        ASSERT((unsigned)row->id < FUNCTION_COUNT);
        call.interp = interp;
        call.first_is_literal = arguments->first_is_literal;
        return functions[row->id](&call);
    }
    if (op_invoke_plain(row, arguments, &result)) return result;
    Placement placed;
    const Builtin *form = NULL;
    if (choose(row, arguments, &form, &placed) != STATUS_OK) return value_fail();
    if (bind(form, &placed, &call) != STATUS_OK) return value_fail();
    call.interp = interp;
    call.first_is_literal = arguments->first_is_literal;
    if (form->kind != ROW_OP) return functions[form->id](&call);
    if (numbers_reduce(&call, &result)) return result;
    return op_invoke(&call, arguments->donated);
}

static bool is_measured(Value value) {
    return value.kind == VALUE_STRING && string_is_measured(value.as.string);
}

static bool has_measured_items(Value value) {
    if (value.kind != VALUE_LIST && value.kind != VALUE_TUPLE) return false;
    for (size_t i = 0; i < value.as.list->count; i++)
        if (is_measured(value.as.list->items[i])) return true;
    return false;
}

// A path whose words only a run knows leads to what was written under the same one. A handler may
// wait for the error of another file.
static bool is_path_aside(const Builtin *row, const BuiltinArguments *arguments) {
    if (row->signature.count == 0 || strcmp(row->signature.params[0].name, "path") != 0)
        return false;
    if (arguments->count == 0 || !is_measured(arguments->positional[0])) return false;
    SCOPED_TEXT(place);
    const char *path = arguments->positional[0].as.string->bytes;
    return aside_read(path, &place) != path && !foretell_attempts();
}

// What a builtin makes of text that shows unknown numbers is such text, or a look at it: its
// length, a number that it is read as, its parts. What only keeps or shows it is neither.
static Value carry_measured(const Builtin *row, const BuiltinArguments *arguments, Value result,
                            bool shown) {
    bool direct = false, plain = row->kind != ROW_OP, found = is_path_aside(row, arguments);
    bool joins = plain && (row->id == FUNCTION_join || row->id == FUNCTION_join_with);
    for (size_t i = found; i < arguments->count; i++) {
        direct |= is_measured(arguments->positional[i]);
        shown |= joins && has_measured_items(arguments->positional[i]);
    }
    for (size_t i = 0; i < arguments->named_count; i++) direct |= is_measured(arguments->named[i]);
    if (result.kind == VALUE_STRING && (direct || shown))
        return string_as_measured(result.as.string);
    bool number = result.kind == VALUE_BOOL || result.kind == VALUE_INT ||
                  result.kind == VALUE_FLOAT || result.kind == VALUE_TENSOR;
    bool taken_apart = arguments->count > 0 && is_measured(arguments->positional[0]) &&
                       (result.kind == VALUE_LIST || result.kind == VALUE_DICT) &&
                       !(plain && row->id == FUNCTION_list);
    if (direct && result.kind == VALUE_BOOL) return value_unknown(DTYPE_BOOL);
    if (direct && (number || taken_apart)) foretell_unknown();
    return result;
}

Value builtin_invoke_foretold(Interp *interp, const Builtin *row,
                              const BuiltinArguments *arguments) {
    uint64_t reads = foretell_reads();
    Value result = builtin_invoke(interp, row, arguments);
    return carry_measured(row, arguments, result, foretell_reads() != reads);
}

Value interp_call_builtin(Interp *interp, const Builtin *row, const Value *arguments,
                          size_t count) {
    BuiltinArguments given = {.positional = arguments, .count = count};
    if (UNLIKELY(foretelling())) return builtin_invoke_foretold(interp, row, &given);
    return builtin_invoke(interp, row, &given);
}
