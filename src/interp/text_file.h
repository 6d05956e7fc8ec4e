// Text files read and written whole, for the builtins.
#ifndef INTERP_TEXT_FILE_H
#define INTERP_TEXT_FILE_H

#include "interp/value.h"

// The contents of a UTF-8 file (a byte order mark is left out). STATUS_IO names path and reason.
Status text_file_read(const char *path, Text *out) MUST_USE;
// Replaces the file, or adds to its end.
Status text_file_write(const char *path, const char *bytes, size_t length, bool append) MUST_USE;

#endif
