// Files put aside: what a run writes goes below a folder of its own, and is read from there again;
// everything else stays as it was. For runs that are to leave no trace.
#ifndef BASE_ASIDE_H
#define BASE_ASIDE_H

#include "base/text.h"

// From here on files of this runtime are put aside, in a new folder below $TMPDIR or /tmp that the
// first of them makes.
void aside_begin(void);
// Removes the folder. NULL is allowed.
typedef struct Aside Aside;
void aside_free(Aside *aside);
// True while no folder has been made; NULL is allowed.
bool aside_is_empty(const Aside *aside);

// Where a file is to be written, or read: `path`, or its place aside. `place` holds the words and
// is the caller's to free.
const char *aside_written(const char *path, Text *place);
const char *aside_read(const char *path, Text *place);
// Whether some text that was put aside shows numbers which only a run knows (device/foretell.h).
void aside_note_measured(void);
bool aside_has_measured(void);
// Removes a file; one that a run with files put aside has not made stays.
void aside_remove(const char *path);

#endif
