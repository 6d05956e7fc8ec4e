// Iterators. Each remembers the length at its start; a list that shrinks meanwhile ends it early,
// entries that a dictionary has lost are passed over.
#include "eval/iterate.h"

#include "base/utf8.h"
#include "value/items.h"
#include "value/print.h"

Status iterator_start_range(Iterator *iterator, Value low, Value high, bool inclusive) {
    int64_t start, stop;
    TRY(value_to_int(low, "the start of the range", &start));
    TRY(value_to_int(high, "the end of the range", &stop));
    uint64_t count = stop > start ? (uint64_t)stop - (uint64_t)start : 0;
    if (inclusive && stop >= start) count++;
    *iterator = (Iterator){.kind = ITERATE_RANGE,
                           .source = value_none(),
                           .keys = value_none(),
                           .next = start,
                           .step = 1,
                           .left = count};
    return STATUS_OK;
}

// An int or bool vector is read at once; other tensors give views.
static Status start_tensor(Iterator *iterator) {
    Tensor *tensor = iterator->source.as.tensor;
    if (tensor_rank(tensor) == 0)
        return fail(STATUS_TYPE, "for runs through tensors of rank 1 and more, but this is %s",
                    value_text(iterator->source).text);
    iterator->kind = ITERATE_TENSOR;
    iterator->left = (uint64_t)tensor_shape_told(tensor).dims[0];
    bool plain = tensor_rank(tensor) == 1 && !dtype_is_float(tensor_dtype(tensor));
    if (!plain) return STATUS_OK;
    Value items = value_to_items(iterator->source, "the tensor");
    if (failed(items)) return error_current()->code;
    value_release(iterator->source);
    iterator->source = items;
    iterator->kind = ITERATE_LIST;
    return STATUS_OK;
}

static Status fail_iterable(Value iterable) {
    fail(STATUS_TYPE, "for cannot run through %s", value_text(iterable).text);
    if (iterable.kind == VALUE_INT)
        fail_help("0..%lld counts up to it", (long long)iterable.as.integer);
    return STATUS_TYPE;
}

static Status start_pass(Iterator *iterator, Handle *handle) {
    ASSERT(handle->type->begin != NULL);
    Value pass = handle->type->begin(handle);
    if (failed(pass)) return error_current()->code;
    value_release(iterator->source);
    iterator->source = pass;
    iterator->kind = ITERATE_PASS;
    iterator->left = UINT64_MAX; // its `next` says when it ends
    iterator->first = pass.as.handle->type->next(pass.as.handle);
    return failed(iterator->first) ? error_current()->code : STATUS_OK;
}

// A relation: its rows when the loop begins.
static Status start_handle(Iterator *iterator) {
    ASSERT(iterator->source.kind == VALUE_HANDLE);
    Handle *handle = iterator->source.as.handle;
    if (handle->type->begin) return start_pass(iterator, handle);
    if (!handle->type->items) return fail_iterable(iterator->source);
    Value items = handle->type->items(handle);
    if (failed(items)) return error_current()->code;
    value_release(iterator->source);
    iterator->source = items;
    iterator->kind = ITERATE_LIST;
    iterator->left = items.as.list->count;
    return STATUS_OK;
}

static Status start_dict(Iterator *iterator, bool two_names) {
    iterator->kind = ITERATE_DICT;
    iterator->left = dict_count(iterator->source.as.dict);
    iterator->paired = two_names;
    iterator->keys = value_to_items(iterator->source, "the dictionary");
    return failed(iterator->keys) ? error_current()->code : STATUS_OK;
}

Status iterator_start(Iterator *iterator, Value iterable, bool two_names) {
    *iterator = (Iterator){.source = iterable, .key = value_none(), .keys = value_none()};
    Status status = STATUS_OK;
    switch (iterable.kind) {
    case VALUE_RANGE:
        iterator->kind = ITERATE_RANGE;
        iterator->next = iterable.as.range->start;
        iterator->step = iterable.as.range->step;
        iterator->left = range_count(iterable.as.range);
        break;
    case VALUE_LIST:
    case VALUE_TUPLE:
        iterator->kind = ITERATE_LIST;
        iterator->left = iterable.as.list->count;
        break;
    case VALUE_STRING:
        iterator->kind = ITERATE_STRING;
        if (string_is_measured(iterable.as.string)) string_note_look();
        iterator->left = iterable.as.string->length;
        break;
    case VALUE_DICT: status = start_dict(iterator, two_names); break;
    case VALUE_TENSOR: status = start_tensor(iterator); break;
    case VALUE_HANDLE: status = start_handle(iterator); break;
    default: status = fail_iterable(iterable);
    }
    if (status != STATUS_OK) value_release(iterator->source);
    return status;
}

static Value next_codepoint(Iterator *iterator) {
    const String *string = iterator->source.as.string;
    ASSERT(iterator->left <= string->length);
    size_t at = string->length - iterator->left;
    uint32_t codepoint;
    size_t size = utf8_decode(string->bytes + at, string->length - at, &codepoint);
    if (size == 0) size = 1;
    ASSERT(iterator->left >= size);
    iterator->left -= size;
    return string_character(string->bytes + at, size);
}

// The entry of a key, which is where it was at the start unless the loop has removed some.
static Value entry_item(const Iterator *iterator, size_t index, Value key) {
    const Dict *dict = iterator->source.as.dict;
    if (dict_count(dict) < iterator->keys.as.list->count) return dict_get(dict, key);
    Value there, item;
    dict_entry(dict, index, &there, &item);
    bool same = there.kind == key.kind && there.as.integer == key.as.integer;
    return same ? item : dict_get(dict, key);
}

// Entries that the loop has removed are passed over.
static Value next_entry(Iterator *iterator, size_t index) {
    ASSERT(iterator->source.kind == VALUE_DICT);
    Value item = value_absent();
    while (true) {
        iterator->key = iterator->keys.as.list->items[index];
        item = entry_item(iterator, index, iterator->key);
        if (item.kind != VALUE_ABSENT || iterator->left == 0) break;
        iterator->left--;
        index = iterator->position++;
    }
    if (item.kind == VALUE_ABSENT) return item;
    return value_retain(iterator->paired ? item : iterator->key);
}

Value iterator_next(Iterator *iterator) {
    if (iterator->left == 0) return value_absent();
    size_t index = iterator->position++;
    if (iterator->kind == ITERATE_STRING) return next_codepoint(iterator);
    ASSERT(iterator->left > 0);
    iterator->left--;
    switch (iterator->kind) {
    case ITERATE_RANGE: {
        int64_t number = iterator->next;
        iterator->next = (int64_t)((uint64_t)number + (uint64_t)iterator->step);
        return value_int(number);
    }
    case ITERATE_TENSOR: return tensor_element(iterator->source.as.tensor, (int64_t)index);
    case ITERATE_DICT: return next_entry(iterator, index);
    case ITERATE_PASS: {
        Handle *pass = iterator->source.as.handle;
        // The first one was taken at the start, and is given away here.
        Value item = index == 0 ? iterator->first : pass->type->next(pass);
        if (item.kind == VALUE_ABSENT) iterator->left = 0;
        return item;
    }
    default: {
        const List *list = iterator->source.as.list;
        return index < list->count ? value_retain(list->items[index]) : value_absent();
    }
    }
}

Value iterator_index(const Iterator *iterator) {
    if (iterator->paired) return iterator->key;
    return value_int((int64_t)iterator->position - 1);
}

void iterator_end(Iterator *iterator) {
    value_release(iterator->keys);
    if (iterator->kind == ITERATE_PASS && iterator->position == 0) value_release(iterator->first);
    value_release(iterator->source);
}
