// Text files read and written whole, for the builtins.
#ifndef LIBRARY_TEXT_FILE_H
#define LIBRARY_TEXT_FILE_H

#include "value/value.h"

// The contents of a UTF-8 file (a byte order mark is left out). STATUS_IO names path and reason.
Status text_file_read(const char *path, Text *out) MUST_USE;
// Replaces the file, or adds to its end.
Status text_file_write(const char *path, const char *bytes, size_t length, bool append) MUST_USE;

#endif
