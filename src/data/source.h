// Where rows of data come from. A source is open while it is used, and knows how many rows there
// are and what each consists of; what a row holds is read when it is asked for.
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "base/status.h"
#include "catalog/dtype.h"
#include "shape/shape.h"

enum { DATA_FIELDS_MAX = 2 };

// Of one row.
typedef struct DataField {
    DType dtype; // FLOAT32 or INT64
    Shape shape;
    bool is_text; // a DataText, no numbers
} DataField;

typedef struct DataText {
    char *bytes; // from malloc, of who asked for the row, also where reading failed
    size_t length;
} DataText;

typedef struct DataSource DataSource;
struct DataSource {
    int64_t count; // rows
    int n_fields;
    DataField fields[DATA_FIELDS_MAX];
    // One row to where each field's pointer shows. From any thread.
    Status (*read)(const DataSource *source, int64_t row, void *const *fields);
    void (*free)(DataSource *source);
    // The names of labels, in order; NULL where there are none.
    char *const *classes;
    size_t class_count;
};

size_t data_field_bytes(const DataField *field);

// Lines of numbers, all as many; the first may name the columns. `target`, a column's name or
// number, becomes the second field; NULL: there is one field.
Status data_open_csv(const char *path, const char *target, char separator,
                     DataSource **out) MUST_USE;
// Pictures [channels, height, width] from 0 to 1; those in sub-folders have the number of theirs as
// the second field. Height 0: all have the size of the first one.
typedef struct ImageWish {
    int64_t height, width;
    bool gray;
} ImageWish;
Status data_open_images(const char *path, const ImageWish *wish, DataSource **out) MUST_USE;
// The bytes of a file, `length` at a time, and those one place further on.
Status data_open_text(const char *path, int64_t length, DataSource **out) MUST_USE;
// Lines of a text in UTF-8 without their line ends, empty ones too.
Status data_open_lines(const char *path, DataSource **out) MUST_USE;

#endif
