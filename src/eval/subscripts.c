// Indexing and fields, for reading. Tensors follow NumPy; lists, tuples and strings have one
// dimension; dictionaries take keys; handles know their own.
#include "eval/subscripts.h"

#include <stdlib.h>

#include "catalog/foreign.h"
#include "eval/access.h"
#include "eval/handle_tensor.h"
#include "eval/structs.h"
#include "eval/upper.h"
#include "value/convert.h"
#include "value/items.h"
#include "value/object.h"
#include "value/print.h"

void lower_step(Lowering *lowering, const Node *node, StepCode *out) {
    *out = (StepCode){.span = node->span};
    if (node->kind == NODE_FIELD) {
        out->name = lower_word(lowering, &node->as.field.name);
        out->name_length = node->as.field.name.length;
        return;
    }
    SubscriptCode *codes = lower_array(lowering, node->as.index.count, sizeof *codes);
    out->subscripts = codes;
    out->count = (int)node->as.index.count;
    for (int i = 0; i < out->count; i++) {
        const Subscript *subscript = &node->as.index.subscripts[i];
        codes[i] = (SubscriptCode){.kind = (int)subscript->kind,
                                   .index = lower(lowering, subscript->index),
                                   .start = lower(lowering, subscript->start),
                                   .stop = lower(lowering, subscript->stop),
                                   .step = lower(lowering, subscript->step),
                                   .span = subscript->span};
    }
}

static Value eval_optional(Frame *frame, const Code *code) {
    return code ? EVAL(frame, code) : value_absent();
}

// Evaluates the parts in the order of the text; ABSENT for those after a failure.
static Value subscript_eval(Frame *frame, const SubscriptCode *code, SubscriptValue *out) {
    *out = (SubscriptValue){code->kind, value_absent(), value_absent(), value_absent(),
                            value_absent()};
    const Code *codes[] = {code->index, code->start, code->stop, code->step};
    Value *values[] = {&out->index, &out->start, &out->stop, &out->step};
    for (int i = 0; i < 4; i++) {
        Value value = eval_optional(frame, codes[i]);
        if (failed(value)) return value;
        *values[i] = value;
    }
    return value_none();
}

Value subscripts_eval(Frame *frame, const StepCode *step, SubscriptValue *out) {
    for (int i = 0; i < step->count; i++) {
        Value value = subscript_eval(frame, &step->subscripts[i], &out[i]);
        if (!failed(value)) continue;
        subscripts_release(out, i + 1);
        return value;
    }
    return value_none();
}

void subscripts_release(SubscriptValue *subscripts, int count) {
    for (int i = count - 1; i >= 0; i--) {
        value_release(subscripts[i].step);
        value_release(subscripts[i].stop);
        value_release(subscripts[i].start);
        value_release(subscripts[i].index);
    }
}

static Status slice_bound(Value value, const char *what, bool *has, int64_t *out) {
    *has = value.kind != VALUE_ABSENT && value.kind != VALUE_NONE;
    return *has ? value_to_int(value, what, out) : STATUS_OK;
}

static Status slice_item(const SubscriptValue *subscript, IndexItem *item) {
    item->kind = INDEX_SLICE;
    TRY(slice_bound(subscript->start, "the start of a slice", &item->has_start, &item->start));
    TRY(slice_bound(subscript->stop, "the end of a slice", &item->has_stop, &item->stop));
    TRY(slice_bound(subscript->step, "the step of a slice", &item->has_step, &item->step));
    if (item->has_step && item->step == 0) return fail(STATUS_VALUE, "the step of a slice is 0");
    return STATUS_OK;
}

// a..b as an index means a:b.
static void range_item(const Range *range, IndexItem *item) {
    *item = (IndexItem){.kind = INDEX_SLICE,
                        .has_start = true,
                        .has_stop = true,
                        .has_step = true,
                        .start = range->start,
                        .stop = range->stop,
                        .step = range->step};
}

static Status index_item(Value index, IndexItem *item) {
    switch (index.kind) {
    case VALUE_INT:
        item->kind = INDEX_INTEGER;
        item->integer = index.as.integer;
        return STATUS_OK;
    case VALUE_NONE: item->kind = INDEX_NEW_AXIS; return STATUS_OK;
    case VALUE_RANGE: range_item(index.as.range, item); return STATUS_OK;
    case VALUE_TENSOR:
        if (tensor_rank(index.as.tensor) > 0) {
            item->kind = INDEX_TENSOR;
            item->tensor = index.as.tensor;
            return STATUS_OK;
        }
        break;
    case VALUE_LIST:
    case VALUE_TUPLE:
        item->kind = INDEX_TENSOR;
        return value_to_tensor(index, "the index", &item->tensor);
    default: break;
    }
    item->kind = INDEX_INTEGER;
    if (index.kind == VALUE_STRING) return entity_position(index.as.string, &item->integer);
    if (index.kind == VALUE_BOOL || !value_is_number(index))
        return fail(STATUS_TYPE, "%s cannot be an index", value_text(index).text);
    return value_to_int(index, "the index", &item->integer);
}

Status index_items(const SubscriptValue *subscripts, int count, IndexItem *items) {
    if (count > INDEX_ITEMS_MAX)
        return fail(STATUS_INDEX, "%d indexes are too many: tensors have at most %d dimensions",
                    count, RANK_MAX);
    for (int i = 0; i < count; i++) {
        items[i] = (IndexItem){.kind = INDEX_ELLIPSIS};
        Status status = STATUS_OK;
        if (subscripts[i].kind == SUBSCRIPT_SLICE) status = slice_item(&subscripts[i], &items[i]);
        if (subscripts[i].kind == SUBSCRIPT_INDEX)
            status = index_item(subscripts[i].index, &items[i]);
        if (status == STATUS_OK) continue;
        index_items_release(subscripts, items, i);
        return status;
    }
    return STATUS_OK;
}

void index_items_release(const SubscriptValue *subscripts, IndexItem *items, int count) {
    ASSERT(count <= INDEX_ITEMS_MAX);
    for (int i = 0; i < count; i++) {
        bool made =
            subscripts[i].kind == SUBSCRIPT_INDEX &&
            (subscripts[i].index.kind == VALUE_LIST || subscripts[i].index.kind == VALUE_TUPLE);
        if (made) tensor_release(items[i].tensor);
    }
}

// One element of an int or bool tensor is read; of a float tensor it is a rank-0 tensor.
static Value tensor_result(Tensor *tensor) {
    if (tensor_rank(tensor) > 0 || dtype_is_float(tensor_dtype(tensor)))
        return value_tensor(tensor);
    Value number;
    Status status = value_read_tensor(tensor, &number);
    tensor_release(tensor);
    return status == STATUS_OK ? number : value_fail();
}

Value tensor_index(Tensor *tensor, const SubscriptValue *subscripts, int count) {
    IndexItem items[INDEX_ITEMS_MAX];
    Tensor *result;
    if (index_items(subscripts, count, items) != STATUS_OK) return value_fail();
    Status status = index_get(tensor, items, count, &result);
    index_items_release(subscripts, items, count);
    return status == STATUS_OK ? tensor_result(result) : value_fail();
}

Status sequence_position(Value index, size_t count, const char *what, size_t *out) {
    int64_t position;
    if (index.kind == VALUE_BOOL)
        return fail(STATUS_TYPE, "%s cannot be an index", value_text(index).text);
    TRY(value_to_int(index, "the index", &position));
    // A range may have more elements than an int64 counts.
    uint64_t back = 0 - (uint64_t)position;
    if (position < 0 ? back > count : (uint64_t)position >= count)
        return fail(STATUS_INDEX, "index %lld is out of range for a %s of length %zu",
                    (long long)position, what, count);
    *out = position < 0 ? count - back : (size_t)position;
    return STATUS_OK;
}

// Python's slice of `count` elements as first, step and how many.
typedef struct SliceRun {
    int64_t first, step, count;
} SliceRun;

static int64_t clamp_bound(bool has, int64_t bound, int64_t absent, int64_t low, int64_t high) {
    if (!has) return absent;
    return bound < low ? low : bound > high ? high : bound;
}

static SliceRun slice_run(const IndexItem *item, int64_t count) {
    SliceRun run = {.step = item->has_step ? item->step : 1};
    int64_t low = run.step > 0 ? 0 : -1, high = run.step > 0 ? count : count - 1;
    int64_t start = item->start < 0 && item->start >= -count ? item->start + count : item->start;
    int64_t stop = item->stop < 0 && item->stop >= -count ? item->stop + count : item->stop;
    if (item->start < -count) start = low;
    if (item->stop < -count) stop = low;
    start = clamp_bound(item->has_start, start, run.step > 0 ? 0 : count - 1, low, high);
    stop = clamp_bound(item->has_stop, stop, run.step > 0 ? count : -1, low, high);
    run.first = start;
    uint64_t distance = run.step > 0 ? (stop > start ? (uint64_t)(stop - start) : 0)
                                     : (start > stop ? (uint64_t)(start - stop) : 0);
    uint64_t stride = run.step > 0 ? (uint64_t)run.step : 0 - (uint64_t)run.step;
    run.count = distance ? (int64_t)((distance - 1) / stride + 1) : 0;
    ASSERT(run.count <= count && (run.count == 0 || (run.first >= 0 && run.first < count)));
    return run;
}

static Value list_slice(Value sequence, const IndexItem *item) {
    const List *list = sequence.as.list;
    SliceRun run = slice_run(item, (int64_t)list->count);
    Value result = sequence.kind == VALUE_LIST ? value_list((size_t)run.count)
                                               : value_tuple((size_t)run.count);
    for (int64_t i = 0; i < run.count; i++)
        list_push(result.as.list, value_retain(list->items[run.first + i * run.step]));
    return result;
}

// What takes a slice's place: items of another list than the target, so that changing it is safe.
static Value items_for(const List *target, Value value) {
    Value items = value_to_items(value, "what a slice of a list takes");
    if (items.kind == VALUE_FAIL || items.as.list != target) return items;
    Value copy = value_list(target->count);
    list_append(copy.as.list, target->items, target->count);
    value_release(items);
    return copy;
}

// Replaced items go to `removed`: releasing one may run a drop that sees the list.
static void replace_run(List *list, SliceRun run, const List *items, List *removed) {
    int64_t given = (int64_t)items->count, both = given < run.count ? given : run.count;
    ASSERT(run.step == 1 || given == run.count);
    for (int64_t i = 0; i < both; i++) {
        Value *place = &list->items[run.first + i * run.step];
        list_push(removed, *place);
        *place = value_retain(items->items[i]);
    }
    for (int64_t i = both; i < given; i++)
        list_insert(list, (size_t)(run.first + i), value_retain(items->items[i]));
    for (int64_t i = run.count; i > both; i--)
        list_push(removed, list_remove(list, (size_t)(run.first + i - 1)));
}

Status list_assign_slice(List *list, const SubscriptValue *subscript, Value value) {
    IndexItem item = {.kind = INDEX_SLICE};
    if (subscript->kind == SUBSCRIPT_SLICE)
        TRY(slice_item(subscript, &item));
    else
        range_item(subscript->index.as.range, &item);
    SCOPED_VALUE(items) = items_for(list, value);
    if (items.kind == VALUE_FAIL) return error_current()->code;
    SliceRun run = slice_run(&item, (int64_t)list->count);
    Status status = STATUS_OK;
    if (run.step != 1 && (int64_t)items.as.list->count != run.count) {
        status = fail(STATUS_VALUE, "a slice with a step selects %lld elements and cannot take %zu",
                      (long long)run.count, items.as.list->count);
    } else {
        SCOPED_VALUE(removed) = value_list(0);
        replace_run(list, run, items.as.list, removed.as.list);
    }
    return status;
}

static Value string_slice_by(const String *string, const IndexItem *item) {
    SliceRun run = slice_run(item, string_length(string));
    if (run.step == 1) return string_slice(string, run.first, run.count);
    SCOPED_TEXT(text);
    for (int64_t i = 0; i < run.count; i++) {
        Value one = string_slice(string, run.first + i * run.step, 1);
        text_append(&text, one.as.string->bytes, one.as.string->length);
    }
    return value_string(text_get(&text), text.length);
}

static Status read_mask(Tensor *mask, int64_t **out, size_t *count) {
    *count = (size_t)tensor_count(mask);
    *out = memory_allocate_zeroed(*count, sizeof **out);
    Status status = tensor_read_integers(mask, *out);
    if (status != STATUS_OK) memory_free_of(out);
    return status;
}

static Value sequence_at(Value sequence, size_t position) {
    if (sequence.kind == VALUE_STRING)
        return string_slice(sequence.as.string, (int64_t)position, 1);
    ASSERT(position < sequence.as.list->count);
    return value_retain(sequence.as.list->items[position]);
}

static size_t sequence_length(Value sequence) {
    return sequence.kind == VALUE_STRING ? (size_t)string_length(sequence.as.string)
                                         : sequence.as.list->count;
}

// Several elements at once, by a list or tensor of indexes or a mask of bools.
static Value list_gather(Value sequence, Value index) {
    int64_t *positions;
    size_t count, length = sequence_length(sequence);
    const char *what = sequence.kind == VALUE_STRING ? "string" : "list";
    bool mask = index.kind == VALUE_TENSOR && tensor_dtype(index.as.tensor) == DTYPE_BOOL &&
                tensor_rank(index.as.tensor) == 1;
    if ((mask ? read_mask(index.as.tensor, &positions, &count)
              : value_to_ints(index, "the index", &positions, &count)) != STATUS_OK)
        return value_fail();
    Value result = value_list(count);
    Status status = STATUS_OK;
    if (mask && count != length)
        status = fail(STATUS_INDEX, "a mask of %zu bools does not fit a %s of length %zu", count,
                      what, length);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        size_t position = i;
        if (mask && !positions[i]) continue;
        if (!mask) status = sequence_position(value_int(positions[i]), length, what, &position);
        if (status == STATUS_OK) list_push(result.as.list, sequence_at(sequence, position));
    }
    free(positions);
    if (status == STATUS_OK) return result;
    value_release(result);
    return value_fail();
}

static Value string_gather(Value string, Value index) {
    SCOPED_VALUE(parts) = list_gather(string, index);
    if (parts.kind == VALUE_FAIL) return value_fail();
    SCOPED_TEXT(text);
    for (size_t i = 0; i < parts.as.list->count; i++) {
        const String *part = parts.as.list->items[i].as.string;
        text_append(&text, part->bytes, part->length);
    }
    return value_string(text_get(&text), text.length);
}

static bool selects_many(Value index) {
    return index.kind == VALUE_LIST ||
           (index.kind == VALUE_TENSOR && tensor_rank(index.as.tensor) > 0);
}

static Value sequence_index(Value object, const SubscriptValue *subscript) {
    const char *what = value_kind_name(object);
    IndexItem item = {.kind = INDEX_INTEGER};
    bool slice = subscript->kind != SUBSCRIPT_INDEX; // `...` is all of the one dimension
    if (subscript->kind == SUBSCRIPT_SLICE && slice_item(subscript, &item) != STATUS_OK)
        return value_fail();
    if (!slice && subscript->index.kind == VALUE_RANGE) {
        range_item(subscript->index.as.range, &item);
        slice = true;
    }
    if (slice)
        return object.kind == VALUE_STRING ? string_slice_by(object.as.string, &item)
                                           : list_slice(object, &item);
    if (selects_many(subscript->index))
        return (object.kind == VALUE_STRING ? string_gather : list_gather)(object,
                                                                           subscript->index);
    size_t position;
    Status status = sequence_position(subscript->index, sequence_length(object), what, &position);
    return status == STATUS_OK ? sequence_at(object, position) : value_fail();
}

static Value fail_no_key(const Dict *dict, Value key) {
    dict_fail_missing(dict, key, "get(d, key, default) gives a default instead");
    return value_fail();
}

static Value dict_index(const Dict *dict, Value index) {
    Value key;
    if (value_to_key(index, &key) != STATUS_OK) return value_fail();
    Value item = dict_get(dict, key);
    if (item.kind != VALUE_ABSENT) return value_retain(item);
    return fail_no_key(dict, key);
}

Status fail_no_index(Value object) {
    if (object.kind == VALUE_NONE) return fail(STATUS_TYPE, "this is none and cannot be indexed");
    return fail(STATUS_TYPE, "%s cannot be indexed", value_text(object).text);
}

static Value range_index(const Range *range, Value index) {
    size_t position;
    Status status = sequence_position(index, (size_t)range_count(range), "range", &position);
    if (status != STATUS_OK) return value_fail();
    return value_int((int64_t)((uint64_t)range->start + position * (uint64_t)range->step));
}

Value value_index(Value object, const SubscriptValue *subscripts, int count) {
    if (object.kind == VALUE_TENSOR) return tensor_index(object.as.tensor, subscripts, count);
    bool one = count == 1 && subscripts[0].kind == SUBSCRIPT_INDEX;
    switch (object.kind) {
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_STRING:
        if (count == 1) return sequence_index(object, subscripts);
        fail(STATUS_INDEX, "a %s has one dimension, but %d indexes are given",
             value_kind_name(object), count);
        return value_fail();
    case VALUE_DICT:
        if (one) return dict_index(object.as.dict, subscripts[0].index);
        fail(STATUS_KEY, "a dictionary takes one key");
        return value_fail();
    case VALUE_RANGE:
        if (one) return range_index(object.as.range, subscripts[0].index);
        break;
    case VALUE_HANDLE: {
        Value item;
        if (object.as.handle->type->tensor)
            return handle_tensor_index(object.as.handle, subscripts, count);
        if (!one || !object.as.handle->type->get_index) break;
        Status status =
            object.as.handle->type->get_index(object.as.handle, subscripts[0].index, &item);
        return status == STATUS_OK ? item : value_fail();
    }
    default: break;
    }
    fail_no_index(object);
    return value_fail();
}

// x.3: an index written as a field.
static bool field_number(const char *name, int64_t *out) {
    if (name[0] < '0' || name[0] > '9') return false;
    *out = strtoll(name, NULL, 10);
    return true;
}

static Value fail_no_field(Value object, const char *name) {
    if (object.kind == VALUE_STRUCT) return struct_fail_field(object.as.instance->type, name);
    if (object.kind == VALUE_DICT) return fail_no_key(object.as.dict, value_cstring(name));
    fail(STATUS_NAME, "%s has no field `%s`", value_text(object).text, name);
    const char *foreign = foreign_help(FOREIGN_MEMBER, name, strlen(name));
    if (foreign) fail_help("%s", foreign);
    if (catalog_find(name, strlen(name))) fail_help("x.%s(...) calls the function", name);
    return value_fail();
}

Value value_field(Value object, const char *name, size_t length) {
    int64_t number;
    if (object.kind == VALUE_STRUCT) {
        int field = struct_find_field(object.as.instance->type, name, length);
        if (field < 0) return struct_fail_field(object.as.instance->type, name);
        Value value = object.as.instance->fields[field];
        if (value.kind != VALUE_ABSENT) return value_retain(value);
        fail(STATUS_NAME, "field `%s` has no value yet", name);
        return value_fail();
    }
    if (object.kind != VALUE_HANDLE && field_number(name, &number)) {
        SubscriptValue subscript = {SUBSCRIPT_INDEX, value_int(number), value_absent(),
                                    value_absent(), value_absent()};
        return value_index(object, &subscript, 1);
    }
    Value value = value_get_property(object, name, length);
    return value.kind == VALUE_ABSENT ? fail_no_field(object, name) : value;
}
