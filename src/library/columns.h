// Columns of a table while it is read, cell by cell. Those of numbers become tensors.
#ifndef LIBRARY_COLUMNS_H
#define LIBRARY_COLUMNS_H

#include "value/value.h"

typedef struct Column Column;

// So many empty columns; `missing` is what a cell without a value is in a list of other things.
// Borrowed: it must not be counted.
Column *columns_new(size_t count, Value missing);
void columns_free(Column *columns, size_t count); // NULL is allowed

Column *column_of(Column *columns, size_t index);
void column_add_integer(Column *column, int64_t number);
void column_add_float(Column *column, double number);
void column_add_missing(Column *column);
void column_add_value(Column *column, Value value); // takes; neither a number nor missing
// What the column holds: int64[n]; float64[n] with nan for what is missing; or a list. It is empty
// afterwards. STATUS_MEMORY when there was not enough memory for all cells.
Status column_take(Column *column, Value *out) MUST_USE;

#endif
