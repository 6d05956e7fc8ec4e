// Files written whole or not at all: next to their place under another name, then renamed.
#ifndef BASE_FILE_REPLACE_H
#define BASE_FILE_REPLACE_H

#include <stddef.h>
#include <stdio.h>

#include "base/status.h"

// `write` makes the file `part`, which lies next to `path`; it then takes the place of `path`, or
// of what a link there leads to, with its rights. When something fails the part is removed and what
// was at `path` stays. A device or a pipe is written to as it is. STATUS_IO names path and reason.
typedef Status (*FileWriter)(const char *part, void *context);
Status file_replace(const char *path, FileWriter write, void *context) MUST_USE;
// Fails where they would for want of a folder or a right, before there is anything to write.
Status file_check_place(const char *path) MUST_USE;
// The same for a writer that wants a stream; it is closed after the call.
typedef Status (*StreamWriter)(FILE *stream, void *context);
Status file_replace_stream(const char *path, StreamWriter write, void *context) MUST_USE;
// The same for what programs go on from (models, checkpoints, facts): on the disk, with its name,
// before they return, so that a power cut leaves the old file or the new one too. This takes
// milliseconds.
Status file_keep(const char *path, FileWriter write, void *context) MUST_USE;
Status file_keep_stream(const char *path, StreamWriter write, void *context) MUST_USE;
// fwrite with words.
Status stream_write(FILE *stream, const void *bytes, size_t length) MUST_USE;

#endif
