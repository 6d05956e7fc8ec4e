// Literals: lists that become tensors, tuples, dictionaries, ranges, interpolated strings, casts.
#include <stdlib.h>

#include "check/operator_words.h"
#include "device/foretell.h"
#include "eval/access.h"
#include "eval/annotations.h"
#include "eval/bind.h"
#include "eval/code.h"
#include "tensor/op.h"
#include "value/convert.h"
#include "value/format.h"
#include "value/object.h"

typedef struct ListCode {
    Code head;
    const Code **items;
    size_t count;
    bool constant; // every number is written out: the tensor is made once
    Value made;    // that tensor, or ABSENT
    List *roots;   // of the code's store: keeps it
} ListCode;

static Value eval_list(Frame *frame, const Code *code);

// Appends the evaluated items to a list; fails with the list released.
static Value eval_items(Frame *frame, const Code **items, size_t count, Value list, bool nested) {
    for (size_t i = 0; i < count; i++) {
        Value item = nested ? literal_eval_element(frame, items[i]) : EVAL(frame, items[i]);
        if (failed(item)) {
            value_release(list);
            return item;
        }
        list_push(list.as.list, item);
    }
    return list;
}

Value literal_eval_element(Frame *frame, const Code *code) {
    if (code->eval == eval_comprehension) {
        Value items = comprehension_items(frame, code);
        return failed(items) ? items : value_cell(items);
    }
    if (code->eval != eval_list) return EVAL(frame, code);
    const ListCode *list = (const ListCode *)code;
    Value items = eval_items(frame, list->items, list->count, value_list(list->count), true);
    return failed(items) ? items : value_cell(items);
}

static List *nested_list(Value item) {
    return item.kind == VALUE_CELL ? item.as.cell->value.as.list : NULL;
}

// What a tensor literal amounts to while its elements are gone through.
typedef struct Numbers {
    Shape shape;
    bool has_float, has_int, has_unknown, ragged;
    int64_t expected, found; // the two lengths of a ragged literal
    double *floats;
    int64_t *integers;
    size_t count;
} Numbers;

// Notes the kinds and the shape; false when some element is not a number.
static bool numbers_measure(const List *list, int depth, Numbers *numbers) {
    int64_t count = (int64_t)list->count;
    ASSERT(depth >= 0);
    if (count == 0 || depth >= RANK_MAX) return false;
    if (numbers->shape.rank == depth) {
        numbers->shape.dims[numbers->shape.rank++] = count;
    } else if (numbers->shape.dims[depth] != count && !numbers->ragged) {
        numbers->ragged = true;
        numbers->expected = numbers->shape.dims[depth];
        numbers->found = count;
    }
    for (size_t i = 0; i < list->count; i++) {
        Value item = list->items[i];
        bool whole = item.kind == VALUE_INT, plain = whole || item.kind == VALUE_FLOAT;
        if (LIKELY(plain && numbers->shape.rank == depth + 1)) {
            numbers->has_int |= whole;
            numbers->has_float |= !whole;
            continue;
        }
        const List *inner = nested_list(item);
        if (inner) {
            if (!numbers_measure(inner, depth + 1, numbers)) return false;
            continue;
        }
        uint64_t kind = value_kind_in_run(item);
        if (!value_is_number(item) && kind != VALUE_BOOL) return false;
        if (numbers->shape.rank > depth + 1 && !numbers->ragged) {
            numbers->ragged = true;
            numbers->expected = numbers->shape.dims[depth + 1];
            numbers->found = 0;
        }
        bool integral = item.kind == VALUE_TENSOR && !dtype_is_float(tensor_dtype(item.as.tensor));
        numbers->has_float |= kind == VALUE_FLOAT || (kind == VALUE_TENSOR && !integral);
        numbers->has_int |= kind == VALUE_INT || integral;
    }
    return true;
}

// A number before nested lists fixes the rank: a list after it is ragged.
static bool rank_agrees(const List *list, int depth, int rank) {
    ASSERT(depth < rank);
    for (size_t i = 0; i < list->count; i++) {
        const List *inner = nested_list(list->items[i]);
        if ((inner != NULL) != (depth + 1 < rank)) return false;
        if (inner && !rank_agrees(inner, depth + 1, rank)) return false;
    }
    return true;
}

static Status numbers_read(const List *list, Numbers *numbers) {
    for (size_t i = 0; i < list->count; i++) {
        const List *inner = nested_list(list->items[i]);
        if (inner) {
            TRY(numbers_read(inner, numbers));
            continue;
        }
        Scalar scalar;
        TRY(value_to_scalar(list->items[i], "the element", &scalar));
        numbers->has_unknown |= scalar.unknown;
        if (scalar.dtype == DTYPE_FLOAT64)
            numbers->floats[numbers->count++] = scalar.as.f;
        else if (numbers->has_float)
            numbers->floats[numbers->count++] = (double)scalar.as.i;
        else
            numbers->integers[numbers->count++] = scalar.as.i;
    }
    return STATUS_OK;
}

static Value numbers_make(List *list, Numbers *numbers) {
    Value whole = {.kind = VALUE_LIST, .as.list = list};
    if (numbers->has_float && value_needs_gradient(whole)) {
        Tensor *stacked;
        TRY_VALUE(value_stack(whole, "the element", &stacked));
        return value_tensor(stacked);
    }
    int64_t count = 1;
    for (int i = 0; i < numbers->shape.rank; i++) count *= numbers->shape.dims[i];
    SCOPED_MEMORY void *storage = memory_allocate_zeroed((size_t)count, sizeof(double));
    numbers->floats = storage;
    numbers->integers = storage;
    Tensor *tensor = NULL;
    Status status = numbers_read(list, numbers);
    if (status == STATUS_OK && numbers->has_float)
        status = tensor_from_floats(numbers->floats, &numbers->shape, DTYPE_FLOAT32, &tensor);
    else if (status == STATUS_OK)
        status = tensor_from_integers(numbers->integers, &numbers->shape,
                                      numbers->has_int ? DTYPE_INT64 : DTYPE_BOOL, &tensor);
    if (status == STATUS_OK && numbers->has_unknown) tensor_forget(tensor);
    return status == STATUS_OK ? value_tensor(tensor) : value_fail();
}

static Value fail_ragged(const Numbers *numbers) {
    if (numbers->ragged && numbers->found > 0)
        return value_failed(literal_fail_ragged(numbers->expected, numbers->found));
    fail(STATUS_SHAPE, "ragged literal: numbers stand next to lists");
    fail_help("list(...) makes a list of anything");
    return value_fail();
}

Value literal_from_list(Value list, bool ragged_is_list) {
    ASSERT(list.kind == VALUE_LIST);
    Numbers numbers = {0};
    bool numeric = numbers_measure(list.as.list, 0, &numbers);
    bool regular = numeric && !numbers.ragged && rank_agrees(list.as.list, 0, numbers.shape.rank);
    if (numeric && (regular || !ragged_is_list)) {
        Value tensor = regular ? numbers_make(list.as.list, &numbers) : fail_ragged(&numbers);
        value_release(list);
        return tensor;
    }
    for (size_t i = 0; i < list.as.list->count; i++) {
        Value *item = &list.as.list->items[i];
        if (item->kind != VALUE_CELL) continue;
        Value inner = literal_from_list(value_retain(item->as.cell->value), ragged_is_list);
        if (failed(inner)) {
            value_release(list);
            return inner;
        }
        value_release(*item);
        *item = inner;
    }
    return list;
}

enum { FEW_ITEMS = 8 };

// A literal of a few ints needs no list on its way. ABSENT when it turns out to be something else:
// then `items` has the values.
static Value eval_few_ints(Frame *frame, const ListCode *code, Value *items) {
    int64_t integers[FEW_ITEMS];
    bool ints = true;
    for (size_t i = 0; i < code->count; i++) {
        items[i] = literal_eval_element(frame, code->items[i]);
        if (failed(items[i])) {
            while (i > 0) value_release(items[--i]);
            return value_fail();
        }
        ints = ints && items[i].kind == VALUE_INT;
        integers[i] = ints ? items[i].as.integer : 0;
    }
    if (!ints) return value_absent();
    Shape shape = {.rank = 1, .dims = {(int64_t)code->count}};
    Tensor *tensor;
    origin_current.at = code->head.span.begin;
    if (tensor_from_integers(integers, &shape, DTYPE_INT64, &tensor) != STATUS_OK)
        return fail_at(code->head.span);
    return value_tensor(tensor);
}

static Value eval_list(Frame *frame, const Code *code) {
    ListCode *list = (ListCode *)(uintptr_t)code;
    if (list->made.kind == VALUE_TENSOR) return value_retain(list->made);
    Value items;
    if (list->count > 0 && list->count <= FEW_ITEMS && !list->constant) {
        Value few[FEW_ITEMS];
        Value made = eval_few_ints(frame, list, few);
        if (made.kind != VALUE_ABSENT) return made;
        items = value_list(list->count);
        for (size_t i = 0; i < list->count; i++) list_push(items.as.list, few[i]);
    } else {
        items = eval_items(frame, list->items, list->count, value_list(list->count), true);
        if (failed(items)) return items;
    }
    origin_current.at = code->span.begin;
    Value value = literal_from_list(items, false);
    if (failed(value)) return fail_at(code->span);
    if (list->constant && value.kind == VALUE_TENSOR) {
        list->made = value; // counted by the roots below
        list_push(list->roots, value_retain(value));
    }
    return value;
}

static bool is_constant(const Code *code) {
    Value value;
    if (code->eval == eval_list) return ((const ListCode *)code)->constant;
    return code_constant(code, &value) && value.kind <= VALUE_FLOAT;
}

const Code *lower_list_literal(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_LIST);
    ListCode *code = LOWER_NEW(lowering, ListCode, eval_list, node->span);
    code->items = lower_list(lowering, &node->as.list);
    code->count = node->as.list.count;
    code->made = value_absent();
    code->roots = lowering->interp->store->roots->as.list;
    code->constant = code->count > 0;
    for (size_t i = 0; i < code->count; i++) code->constant &= is_constant(code->items[i]);
    return &code->head;
}

static Value eval_tuple(Frame *frame, const Code *code) {
    const ListCode *tuple = (const ListCode *)code;
    return eval_items(frame, tuple->items, tuple->count, value_tuple(tuple->count), false);
}

const Code *lower_tuple(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_TUPLE || node->kind == NODE_LIST);
    ListCode *code = LOWER_NEW(lowering, ListCode, eval_tuple, node->span);
    code->items = lower_list(lowering, &node->as.list);
    code->count = node->as.list.count;
    return &code->head;
}

typedef struct DictCode {
    Code head;
    const Code **keys, **values;
    size_t count;
} DictCode;

static Value eval_dict_entry(Frame *frame, const DictCode *code, size_t index, Dict *dict) {
    Value key = EVAL(frame, code->keys[index]);
    if (failed(key)) return key;
    Value word;
    Status status = value_to_key(key, &word);
    value_release(key);
    if (status != STATUS_OK) return fail_at(code->keys[index]->span);
    Value value = EVAL(frame, code->values[index]);
    if (!failed(value)) dict_set(dict, word, value);
    return failed(value) ? value : value_none();
}

static Value eval_dict(Frame *frame, const Code *code) {
    const DictCode *literal = (const DictCode *)code;
    Value dict = value_dict();
    for (size_t i = 0; i < literal->count; i++) {
        Value entry = eval_dict_entry(frame, literal, i, dict.as.dict);
        if (!failed(entry)) continue;
        value_release(dict);
        return entry;
    }
    return dict;
}

const Code *lower_dict(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_DICT);
    DictCode *code = LOWER_NEW(lowering, DictCode, eval_dict, node->span);
    code->keys = lower_list(lowering, &node->as.dict.keys);
    code->values = lower_list(lowering, &node->as.dict.values);
    ASSERT(node->as.dict.keys.count == node->as.dict.values.count);
    code->count = node->as.dict.keys.count;
    return &code->head;
}

typedef struct RangeCode {
    Code head;
    const Code *low, *high;
    bool inclusive;
} RangeCode;

static Value range_make(Value low, Value high, bool inclusive) {
    int64_t start, stop;
    if (value_to_int(low, "the start of the range", &start) != STATUS_OK) {
        if (low.kind == VALUE_STRING) fail_help("strings are joined by `+`");
        return value_fail();
    }
    if (value_to_int(high, "the end of the range", &stop) != STATUS_OK) return value_fail();
    if (inclusive && stop == INT64_MAX) {
        fail(STATUS_OVERFLOW, "the range %lld..=%lld does not fit in 64 bits", (long long)start,
             (long long)stop);
        return value_fail();
    }
    return value_range(start, inclusive ? stop + 1 : stop, 1);
}

static Value eval_range(Frame *frame, const Code *code) {
    const RangeCode *range = (const RangeCode *)code;
    SCOPED_VALUE(low) = range->low ? EVAL(frame, range->low) : value_int(0);
    if (failed(low)) return low;
    Value high = EVAL(frame, range->high);
    if (failed(high)) return high;
    Value value = range_make(low, high, range->inclusive);
    value_release(high);
    return failed(value) ? fail_at(code->span) : value;
}

const Code *lower_range(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_RANGE);
    RangeCode *code = LOWER_NEW(lowering, RangeCode, eval_range, node->span);
    code->low = lower(lowering, node->as.range.low);
    code->high = lower(lowering, node->as.range.high);
    code->inclusive = node->as.range.inclusive;
    return &code->head;
}

typedef struct FormatCode {
    Code head;
    const char **texts, **specs;
    size_t *lengths;
    const Code **values;
    size_t count;
} FormatCode;

static Value format_pieces(Frame *frame, const FormatCode *format, Text *text) {
    for (size_t i = 0; i <= format->count; i++) {
        text_append(text, format->texts[i], format->lengths[i]);
        if (i == format->count) break;
        Value value = EVAL(frame, format->values[i]);
        if (failed(value)) return value;
        Status status = format_value(value, format->specs[i], text);
        value_release(value);
        if (status != STATUS_OK) return fail_at(format->values[i]->span);
    }
    return value_string(text_get(text), text->length);
}

static Value eval_format(Frame *frame, const Code *code) {
    SCOPED_TEXT(text);
    return format_pieces(frame, (const FormatCode *)code, &text);
}

static Value eval_format_foretold(Frame *frame, const Code *code) {
    uint64_t reads = foretell_reads();
    Value value = eval_format(frame, code);
    bool measured = foretell_reads() != reads && !failed(value);
    return measured ? string_as_measured(value.as.string) : value;
}

const Code *lower_format_string(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_FORMAT_STRING);
    FormatCode *code = LOWER_NEW(lowering, FormatCode,
                                 foretelling() ? eval_format_foretold : eval_format, node->span);
    code->count = node->as.format_string.values.count;
    code->values = lower_list(lowering, &node->as.format_string.values);
    code->texts = lower_array(lowering, code->count + 1, sizeof *code->texts);
    code->lengths = lower_array(lowering, code->count + 1, sizeof *code->lengths);
    code->specs = lower_array(lowering, code->count + 1, sizeof *code->specs);
    for (size_t i = 0; i <= code->count; i++) {
        const Word *word = &node->as.format_string.texts[i];
        code->texts[i] = word->text ? lower_word(lowering, word) : "";
        code->lengths[i] = word->text ? word->length : 0;
        const char *spec = i < code->count && node->as.format_string.specs
                               ? node->as.format_string.specs[i]
                               : NULL;
        if (spec) code->specs[i] = arena_copy_string(lowering->arena, spec, strlen(spec));
    }
    return &code->head;
}

typedef struct CastCode {
    Code head;
    const Code *value;
    const Annotation *type;
    const Builtin *function; // int, float, bool, str: for values that are not tensors
    DType dtype;             // of tensors; DTYPE_COUNT: none
} CastCode;

static Value cast_tensor(const CastCode *cast, Value value) {
    Tensor *given, *result;
    if (value_to_tensor(value, "the value", &given) != STATUS_OK) return value_fail();
    Status status = tensor_cast(given, cast->dtype, &result);
    tensor_release(given);
    return status == STATUS_OK ? value_tensor(result) : value_fail();
}

static bool casts_as_tensor(const CastCode *cast, Value value, bool plain_word) {
    if (cast->dtype == DTYPE_COUNT) return false;
    if (value.kind == VALUE_LIST || value.kind == VALUE_TUPLE || value.kind == VALUE_RANGE)
        return true;
    if (value_is_handle_tensor(value)) return true;
    if (value.kind != VALUE_TENSOR) return false;
    return tensor_rank(value.as.tensor) > 0 || !plain_word;
}

static Value eval_cast(Frame *frame, const Code *code) {
    const CastCode *cast = (const CastCode *)code;
    Value value = EVAL(frame, cast->value);
    if (failed(value)) return value;
    origin_current.at = code->span.begin;
    Value result;
    bool plain_word = cast->function != NULL && annotation_is_plain_word(cast->type);
    if (casts_as_tensor(cast, value, plain_word))
        result = cast_tensor(cast, value);
    else if (cast->function)
        result = interp_call_builtin(frame->interp, cast->function, &value, 1);
    else
        return failed(result = annotation_convert(frame, cast->type, value, "the value"))
                   ? fail_at(code->span)
                   : result;
    value_release(value);
    return failed(result) ? fail_at(code->span) : result;
}

static const struct {
    const char *word, *function;
    DType dtype;
} cast_words[] = {
    {"int", "int", DTYPE_INT64},    {"float", "float", DTYPE_FLOAT32}, {"bool", "bool", DTYPE_BOOL},
    {"string", "str", DTYPE_COUNT}, {"str", "str", DTYPE_COUNT},
};

const Code *lower_cast(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_CAST);
    const TypeNode *type = node->as.cast.type;
    CastCode *code = LOWER_NEW(lowering, CastCode, eval_cast, node->span);
    code->value = lower(lowering, node->as.cast.value);
    code->type = lower_annotation(lowering, type);
    code->dtype = DTYPE_COUNT;
    if (type->kind != TYPE_NAMED) return &code->head;
    const char *function = NULL;
    for (size_t i = 0; i < sizeof cast_words / sizeof *cast_words; i++) {
        if (strcmp(cast_words[i].word, type->name.text) != 0) continue;
        function = cast_words[i].function;
        code->dtype = cast_words[i].dtype;
    }
    if (!function && dtype_find(type->name.text, type->name.length, &code->dtype))
        function = dtype_is_float(code->dtype)                  ? "float"
                   : dtype_kind(code->dtype) == DTYPE_KIND_BOOL ? "bool"
                                                                : "int";
    if (function) code->function = catalog_find(function, strlen(function));
    return &code->head;
}
