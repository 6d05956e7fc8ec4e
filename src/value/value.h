// A value of the language: 16 bytes, returned in two registers. Kinds from VALUE_COUNTED_FIRST on
// point to objects with a reference count, because they can hold device memory; strings and others
// below it belong to the collector alone.
#ifndef VALUE_VALUE_H
#define VALUE_VALUE_H

#include <string.h>

#include "base/counted.h"
#include "base/origin.h"
#include "base/text.h"
#include "tensor/tensor.h"

typedef enum ValueKind {
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STRING,   // as.string: immutable, collected
    VALUE_RANGE,    // as.range: collected
    VALUE_BUILTIN,  // as.builtin: a catalog row used as a value
    VALUE_DTYPE,    // as.integer: a DType (x.dtype, dtype: float16)
    VALUE_TYPE,     // a struct type used as a value
    VALUE_MEASURED, // as.measured: a number that only a run has (foretell.h)
    VALUE_ABSENT,   // an optional argument that was not given; an unset variable
    VALUE_FAIL,     // evaluation failed: the words are in error_current()
    VALUE_COUNTED_FIRST,
    VALUE_TENSOR = VALUE_COUNTED_FIRST,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_DICT,
    VALUE_STRUCT,
    VALUE_FUNCTION, // a closure: code and captured cells
    VALUE_HANDLE,   // model, tokenizer, KV cache, tensor buffer, optimizer: as.handle->type says
                    // which
    VALUE_CELL,     // a captured variable's place (object.h); only in slots, never a script's value
} ValueKind;

typedef struct String String;
typedef struct Range Range;
typedef struct List List; // also tuples
typedef struct Dict Dict;
typedef struct Instance Instance;
typedef struct Function Function;
typedef struct Handle Handle;
typedef struct Cell Cell;
typedef struct Builtin Builtin; // catalog/catalog.h
typedef struct Interp Interp;

typedef struct Value {
    uint64_t kind; // ValueKind
    union {
        bool boolean;
        int64_t integer;
        struct {
            uint32_t kind; // that it has in a run: bool, int or float
            SourcePos at;  // where it was read
        } measured;
        double number;
        String *string;
        Range *range;
        const Builtin *builtin;
        Counted *counted;
        Tensor *tensor;
        List *list;
        Dict *dict;
        Instance *instance;
        Function *function;
        Handle *handle;
        Cell *cell;
        void *pointer;
    } as;
} Value;

struct String {
    size_t length;      // bytes
    int64_t codepoints; // -1 until counted; STRING_MEASURED
    uint64_t hash;      // 0 until a dictionary asked
    const char *bytes;  // after them comes NUL, unless a longer string shares them (string_end)
};

// Of a text that shows numbers which only a run knows, while memory is foretold: it is carried on
// to other texts, and whoever looks at it is noted (device/foretell.h).
enum { STRING_MEASURED = -2 };

struct Range {
    int64_t start, stop, step; // half-open; step is never 0
};

struct List {
    Counted counted;
    size_t count, capacity;
    Value *items;
};

// What makes a handle a tensor, with names for places along its dimensions.
enum { PLACE_ALL = INT64_MIN }; // of `at`: the whole dimension
typedef struct HandleTensor {
    int (*rank)(const Handle *handle);
    // The part at one place of each dimension that is not PLACE_ALL, which it does not have; places
    // count from the end where they are negative. A new reference.
    Status (*read)(Handle *handle, const int64_t *at, Tensor **out);
    // Writes such a part, whose shape `value` has.
    Status (*write)(Handle *handle, const int64_t *at, Tensor *value);
    Status (*place)(Handle *handle, int dim, const String *name, int64_t *out);
    // Another one when its numbers may be others; NULL: they always may be.
    uint64_t (*version)(const Handle *handle);
    // Whether an equation may take the dimension longer, with zeros, or shorter; NULL: none.
    bool (*open)(const Handle *handle, int dim);
} HandleTensor;

// Opaque things made by other modules, with what the language needs to know of them.
typedef struct HandleType {
    const char *name; // "model", "tokenizer", "KVCache": what type(x) returns
    void (*release)(void *payload);
    // A field or property; NULL when it has none. STATUS_NAME when there is no such field.
    Status (*get_field)(Handle *handle, const char *name, Value *out);
    Status (*get_index)(Handle *handle, Value index, Value *out);
    void (*print)(Handle *handle, Text *out); // NULL: "<model>"
    // What makes it a function: arguments are borrowed, the result is a new reference. May be NULL.
    Value (*call)(Interp *interp, Handle *handle, const Value *arguments, size_t count);
    // What makes it a collection; all three or none. items: a new list.
    Status (*length)(Handle *handle, int64_t *out);
    Value (*items)(Handle *handle);
    Status (*contains)(Handle *handle, Value item, bool *out);
    // What `for` takes from it one at a time: a new pass, whose `next` gives a new reference,
    // ABSENT at the end. Both or none.
    Value (*begin)(Handle *handle);
    Value (*next)(Handle *pass);
    const HandleTensor *tensor; // NULL: it is none
} HandleType;
struct Handle {
    Counted counted;
    const HandleType *type;
    void *payload;
    Value attached; // what it holds of the language's own values; most hold NONE
};

static inline Value value_none(void) {
    return (Value){.kind = VALUE_NONE};
}
static inline Value value_absent(void) {
    return (Value){.kind = VALUE_ABSENT};
}
static inline Value value_fail(void) {
    return (Value){.kind = VALUE_FAIL};
}
// Of what failed: return value_failed(fail(...)).
static inline Value value_failed(Status status) {
    ASSERT(status != STATUS_OK);
    return value_fail();
}
static inline Value value_bool(bool b) {
    return (Value){.kind = VALUE_BOOL, .as.integer = b};
}
static inline Value value_int(int64_t i) {
    return (Value){.kind = VALUE_INT, .as.integer = i};
}
static inline Value value_float(double f) {
    return (Value){.kind = VALUE_FLOAT, .as.number = f};
}
// A number of that kind which only a run has: it goes through arithmetic, containers and texts.
static inline Value value_measured(uint64_t kind, SourcePos at) {
    return (Value){.kind = VALUE_MEASURED, .as.measured = {(uint32_t)kind, at}};
}
static inline Value value_tensor(Tensor *t) {
    return (Value){.kind = VALUE_TENSOR, .as.tensor = t};
} // takes
Value value_string(const char *bytes, size_t length); // copies onto the collector's heap
Value value_cstring(const char *string);
Value value_list(size_t capacity); // an empty list, one reference
Value value_list_of(size_t count); // for so many items; VALUE_FAIL when memory is short
Value value_tuple(size_t capacity);
Value value_dict(void);
Value value_range(int64_t start, int64_t stop, int64_t step);                   // step is not 0
Value value_handle(const HandleType *type, void *payload);                      // takes the payload
Value value_handle_with(const HandleType *type, void *payload, Value attached); // takes both
void list_push(List *list, Value item);                                         // takes the item
// Items of another list, retained. Appends nothing where memory runs out.
void list_append(List *list, const Value *items, size_t count);
bool list_reserve(List *list, size_t capacity); // false when there is no memory for it
// List indexes count from 0 and must be in range. Insert takes the item, remove gives it away.
void list_insert(List *list, size_t index, Value item);
Value list_remove(List *list, size_t index);
// Borrowed item or ABSENT. Keys are strings, ints or bools.
Value dict_get(const Dict *dict, Value key);
void dict_set(Dict *dict, Value key, Value item); // takes both
Value *dict_find(Dict *dict, Value key);          // where the item lies, or NULL
// That there is no such key: with the one that is nearest, or else the help, which may be NULL.
Status dict_fail_missing(const Dict *dict, Value key, const char *help);
size_t dict_count(const Dict *dict);
// Entry `index` in insertion order, borrowed.
void dict_entry(const Dict *dict, size_t index, Value *key, Value *item);
bool dict_remove(Dict *dict, Value key, Value *removed); // false: no such key; gives the item away
void dict_clear(Dict *dict);
Value dict_get_word(const Dict *dict, const char *key); // borrowed item or ABSENT
void dict_set_word(Dict *dict, const char *key, Value item);

// A NUL after the bytes, for functions of C. What a builtin is given (arguments, what
// value_to_string reads, keys of dictionaries) has it already.
const String *string_end(const String *string);
uint64_t string_hash(const String *string);
// One character, of `size` bytes.
Value string_character(const char *bytes, size_t size);
// Strings by code points. Indexes are in range 0..string_length. Each takes constant time, once the
// string is known.
int64_t string_length(const String *string);
static inline bool string_is_measured(const String *string) {
    return UNLIKELY(string->codepoints == STRING_MEASURED);
}
Value string_as_measured(const String *string);
void string_note_look(void);
Value string_slice(const String *string, int64_t start, int64_t count);
// Where in the bytes a code point begins, or, for the length, the end.
size_t string_byte_of(const String *string, int64_t index);
// Takes the time of b alone where a is long and was made by string_concat, too.
Value string_concat(const String *a, const String *b);
static inline bool string_same(const String *a, const String *b) {
    return a == b || (a->length == b->length &&
                      (a->length == 0 ||
                       (a->bytes[0] == b->bytes[0] && memcmp(a->bytes, b->bytes, a->length) == 0)));
}
// The same, where the program asks, which looks at text that only a run has.
bool string_equals_measured(const String *a, const String *b);
static inline bool string_equals(const String *a, const String *b) {
    if (string_is_measured(a) || string_is_measured(b)) return string_equals_measured(a, b);
    return string_same(a, b);
}
bool value_is_text(Value value, const char *text);    // a string of these bytes
int string_compare(const String *a, const String *b); // by code points, as memcmp orders UTF-8

static inline bool value_is_sequence(Value value) {
    return value.kind == VALUE_LIST || value.kind == VALUE_TUPLE;
}

// The kind that a value has in a run.
static inline uint64_t value_kind_in_run(Value value) {
    return value.kind == VALUE_MEASURED ? value.as.measured.kind : value.kind;
}

// Where that of two numbers was read which only a run has.
static inline SourcePos value_measured_at(Value left, Value right) {
    return left.kind == VALUE_MEASURED ? left.as.measured.at : right.as.measured.at;
}

// A number that is not a tensor; a bool is one.
static inline bool value_is_plain_number(Value value) {
    uint64_t kind = value_kind_in_run(value);
    return kind == VALUE_INT || kind == VALUE_FLOAT || kind == VALUE_BOOL;
}

static inline bool value_is_counted(Value v) {
    return v.kind >= VALUE_COUNTED_FIRST;
}
void value_release_counted(Value value);
static inline Value value_retain(Value value) {
    // The count is the first member of every counted thing, tensors included.
    if (value_is_counted(value)) value.as.counted->refs++;
    return value;
}
static inline void value_release(Value value) {
    if (value_is_counted(value) && --value.as.counted->refs <= 0) value_release_counted(value);
}
static inline void value_release_of(Value *value) {
    value_release(*value);
}
// A value of this scope, which must be given one: released when the scope is left.
#define SCOPED_VALUE(name) Value name __attribute__((cleanup(value_release_of), unused))

// "int", "string", "tensor", "list", "Point"...: what type(x) returns and errors say.
const char *value_kind_name(Value value);
// Number of values a range runs through.
uint64_t range_count(const Range *range);

#endif
