// x[...] of a handle that is a tensor: names become places, and of the tensor only that part is
// made which the places leave open.
#include "eval/handle_tensor.h"
#include "eval/subscripts.h"
#include "tensor/compose.h"
#include "value/convert.h"

typedef struct Selection {
    int64_t at[RANK_MAX];                 // PLACE_ALL: the dimension is open
    SubscriptValue open[INDEX_ITEMS_MAX]; // of the open dimensions; borrowed values
    int open_count;
} Selection;

static bool is_integer(Value value) {
    return value_is_number(value);
}

// Whether each subscript stands for the dimension at its place.
static bool is_plain(const SubscriptValue *subscripts, int count) {
    for (int i = 0; i < count; i++) {
        bool index = subscripts[i].kind == SUBSCRIPT_INDEX;
        if (subscripts[i].kind == SUBSCRIPT_ELLIPSIS) return false;
        if (index && subscripts[i].index.kind == VALUE_NONE) return false;
    }
    return true;
}

static Status select_parts(Handle *handle, const SubscriptValue *subscripts, int count,
                           Selection *out) {
    const HandleTensor *tensor = handle->type->tensor;
    bool plain = is_plain(subscripts, count);
    int rank = tensor->rank(handle);
    for (int i = 0; i < RANK_MAX; i++) out->at[i] = PLACE_ALL;
    out->open_count = 0;
    ASSERT(rank >= 0 && rank <= RANK_MAX);
    if (count > INDEX_ITEMS_MAX || (plain && count > rank))
        return fail(STATUS_INDEX, "%d indexes are too many for a %s with %d dimension%s", count,
                    handle->type->name, rank, rank == 1 ? "" : "s");
    for (int i = 0; i < count; i++) {
        SubscriptValue subscript = subscripts[i];
        bool index = subscript.kind == SUBSCRIPT_INDEX;
        if (index && subscript.index.kind == VALUE_STRING) {
            int64_t place;
            if (!plain) return fail(STATUS_INDEX, "a name stands only among plain indexes");
            TRY(tensor->place(handle, i, subscript.index.as.string, &place));
            subscript.index = value_int(place);
        }
        if (plain && index && is_integer(subscript.index))
            TRY(value_to_int(subscript.index, "the index", &out->at[i]));
        else
            out->open[out->open_count++] = subscript;
    }
    return STATUS_OK;
}

Value handle_tensor_index(Handle *handle, const SubscriptValue *subscripts, int count) {
    ASSERT(handle->type->tensor != NULL);
    Selection selection;
    SCOPED_TENSOR(part);
    TRY_VALUE(select_parts(handle, subscripts, count, &selection));
    TRY_VALUE(handle->type->tensor->read(handle, selection.at, &part));
    return tensor_index(part, selection.open, selection.open_count);
}

Status handle_tensor_set(Handle *handle, const SubscriptValue *subscripts, int count,
                         OpInput value) {
    ASSERT(handle->type->tensor != NULL);
    Selection selection;
    SCOPED_TENSOR(part);
    IndexItem items[INDEX_ITEMS_MAX];
    TRY(select_parts(handle, subscripts, count, &selection));
    TRY(handle->type->tensor->read(handle, selection.at, &part));
    TRY(index_items(selection.open, selection.open_count, items));
    Status status = index_set(&part, items, selection.open_count, value, true);
    index_items_release(selection.open, items, selection.open_count);
    TRY(status);
    return handle->type->tensor->write(handle, selection.at, part);
}
