// Facts as files: the constants, then each relation's facts, column by column, behind a checksum.
#ifndef LOGIC_ARCHIVE_H
#define LOGIC_ARCHIVE_H

#include "logic/store.h"

// Writes the facts of one relation, or of all (NULL); derived rows are not among them. The file is
// replaced whole.
Status store_save(const Store *store, const Relation *only, const char *path) MUST_USE;
// Adds the facts of a file to the relations of the same names, of one relation or of all (NULL);
// *added: how many are new. When something does not fit, none is added.
Status store_load(Store *store, Relation *only, const char *path, uint64_t *added) MUST_USE;
// The same from the bytes behind the checksum.
Status store_load_bytes(Store *store, Relation *only, const uint8_t *bytes, size_t length,
                        uint64_t *added) MUST_USE;

#endif
