// Facts as files: the constants, then each relation's facts, column by column, behind a checksum,
// and what they weigh.
#ifndef LOGIC_ARCHIVE_H
#define LOGIC_ARCHIVE_H

#include "logic/store.h"

typedef struct FactWeight {
    double number;
    uint64_t group; // of facts that exclude each other the same; 0: none
} FactWeight;

// Who knows what facts weigh; none of these changes the store.
typedef struct FactWeigher {
    void *context;
    bool (*any)(void *context, const Relation *relation);
    Status (*find)(void *context, const Relation *relation, const Datum *values, FactWeight *out,
                   bool *found);
    // Of a fact that was loaded; NULL: it is certain. Groups are those of the file.
    void (*take)(void *context, const Relation *relation, const Datum *values,
                 const FactWeight *weight);
} FactWeigher;

typedef struct Archive {
    Store *store;
    Relation *only;             // NULL: all
    const FactWeigher *weigher; // NULL: facts have no weights
} Archive;

// Writes the facts of one relation, or of all; derived rows are not among them. The file is
// replaced whole.
Status store_save(const Archive *what, const char *path) MUST_USE;
// Adds the facts of a file to the relations of the same names; *added: how many are new. When
// something does not fit, none is added.
Status store_load(const Archive *what, const char *path, uint64_t *added) MUST_USE;
// The same from the bytes behind the checksum.
Status store_load_bytes(const Archive *what, const uint8_t *bytes, size_t length,
                        uint64_t *added) MUST_USE;

#endif
