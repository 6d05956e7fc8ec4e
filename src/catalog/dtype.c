// Names and sizes of element types.
#include "catalog/dtype.h"

#include <string.h>

const DTypeInfo dtype_info[DTYPE_COUNT] = {
#define DTYPE(code, name, kind, block, bytes, short_name)                                          \
    {name, short_name, DTYPE_KIND_##kind, block, bytes},
#include "catalog/dtypes.def"
#undef DTYPE
};

static bool matches(const char *word, const char *name, size_t length) {
    return strlen(word) == length && length > 0 && memcmp(word, name, length) == 0;
}

bool dtype_find(const char *name, size_t length, DType *out) {
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (matches(dtype_info[i].name, name, length) ||
            matches(dtype_info[i].short_name, name, length)) {
            *out = (DType)i;
            return true;
        }
    return false;
}
