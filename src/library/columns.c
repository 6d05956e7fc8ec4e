// A column is of integers as long as it can be, then of floats, then a list of values.
#include "library/columns.h"

#include <stdlib.h>

#include "base/memory.h"
#include "device/device.h"
#include "value/heap.h"

typedef enum ColumnKind { COLUMN_INTEGERS, COLUMN_FLOATS, COLUMN_VALUES } ColumnKind;

typedef union Slot {
    int64_t integer;
    double number;
} Slot;

struct Column {
    ColumnKind kind;
    Slot *cells; // while it is of numbers
    size_t count, capacity;
    Value values;  // a list; NONE while it is of numbers
    Value missing; // in that list
};

// A nan that no text reads as: the cell had no value.
static const uint64_t missing_bits = 0x7ff8000000000b1aULL;

static double missing_number(void) {
    double number;
    memcpy(&number, &missing_bits, sizeof number);
    return number;
}

static bool is_missing(double number) {
    return memcmp(&number, &missing_bits, sizeof number) == 0;
}

Column *columns_new(size_t count, Value missing) {
    ASSERT(!value_is_counted(missing));
    Column *columns = heap_allocate_rooted((count + 1) * sizeof *columns);
    for (size_t i = 0; i < count; i++) columns[i].missing = missing;
    return columns;
}

void columns_free(Column *columns, size_t count) {
    for (size_t i = 0; columns && i < count; i++) {
        free(columns[i].cells);
        value_release(columns[i].values);
    }
    heap_free(columns);
}

Column *column_of(Column *columns, size_t index) {
    return columns + index;
}

// Without memory the cell is left out; column_take says so.
static void add_cell(Column *column, Slot cell) {
    if (UNLIKELY(column->count == column->capacity)) {
        size_t capacity = column->capacity ? column->capacity * 2 : 64;
        Slot *more = memory_try_resize(column->cells, capacity * sizeof *more);
        if (!more) return;
        column->cells = more;
        column->capacity = capacity;
    }
    column->cells[column->count++] = cell;
}

static void make_floats(Column *column) {
    for (size_t i = 0; i < column->count; i++)
        column->cells[i].number = (double)column->cells[i].integer;
    column->kind = COLUMN_FLOATS;
}

static void make_values(Column *column) {
    column->values = value_list(column->count + 1);
    for (size_t i = 0; i < column->count; i++) {
        Slot cell = column->cells[i];
        Value value = column->kind == COLUMN_INTEGERS ? value_int(cell.integer)
                      : is_missing(cell.number)       ? column->missing
                                                      : value_float(cell.number);
        list_push(column->values.as.list, value);
    }
    free(column->cells);
    column->cells = NULL;
    column->kind = COLUMN_VALUES;
}

void column_add_integer(Column *column, int64_t number) {
    if (LIKELY(column->kind == COLUMN_INTEGERS))
        add_cell(column, (Slot){.integer = number});
    else if (column->kind == COLUMN_FLOATS)
        add_cell(column, (Slot){.number = (double)number});
    else
        list_push(column->values.as.list, value_int(number));
}

void column_add_float(Column *column, double number) {
    if (column->kind == COLUMN_INTEGERS) make_floats(column);
    if (LIKELY(column->kind == COLUMN_FLOATS))
        add_cell(column, (Slot){.number = number});
    else
        list_push(column->values.as.list, value_float(number));
}

void column_add_missing(Column *column) {
    if (column->kind == COLUMN_VALUES)
        list_push(column->values.as.list, column->missing);
    else
        column_add_float(column, missing_number());
}

void column_add_value(Column *column, Value value) {
    if (UNLIKELY(column->kind != COLUMN_VALUES)) make_values(column);
    list_push(column->values.as.list, value);
}

static Status make_tensor(const Column *column, Value *out) {
    ASSERT(column->kind != COLUMN_VALUES);
    Shape shape = {.rank = 1, .dims = {(int64_t)column->count}};
    size_t bytes = column->count * sizeof *column->cells;
    Device *device;
    Tensor *tensor;
    TRY(device_default(&device));
    DType dtype = column->kind == COLUMN_INTEGERS ? DTYPE_INT64 : DTYPE_FLOAT64;
    TRY(tensor_new(device, dtype, &shape, &tensor));
    Status status = bytes ? buffer_upload(tensor->view.buffer, 0, column->cells, bytes) : STATUS_OK;
    if (status != STATUS_OK)
        tensor_release(tensor);
    else
        *out = value_tensor(tensor);
    return status;
}

Status column_take(Column *column, Value *out) {
    TRY(memory_exhausted());
    if (column->kind != COLUMN_VALUES) return make_tensor(column, out);
    *out = column->values;
    column->values = value_none();
    return STATUS_OK;
}
