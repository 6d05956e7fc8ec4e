// What of libzip is used. Only npz.c includes it.
#ifndef MODEL_ZIP_LIBRARY_H
#define MODEL_ZIP_LIBRARY_H

#include <zip.h>

#include "base/status.h"

// clang-format off
#define ZIP_FUNCTIONS(F)                                                                           \
    F(source_buffer_create)                                                                        \
    F(source_function)                                                                             \
    F(source_free) F(open_from_source) F(open) F(close) F(discard) F(get_num_entries)              \
        F(stat_index) F(stat_init) F(fopen_index) F(fread) F(fclose) F(file_add)                   \
            F(set_file_compression) F(file_set_dostime) F(error_init) F(error_init_with_code)      \
                F(error_fini) F(error_strerror) F(get_error) F(file_get_error)
// clang-format on

typedef struct ZipLibrary {
#define ZIP_FIELD(name) __typeof__(zip_##name) *name;
    ZIP_FUNCTIONS(ZIP_FIELD)
#undef ZIP_FIELD
} ZipLibrary;

// Before the first use.
Status zip_library_load(void) MUST_USE;
extern ZipLibrary zip_library;

#endif
