// A table that the system refuses to let grow could not be ended in order: it is asked before.
#include "logic/room.h"

#include <stdlib.h>

static Status fail_bytes(const Store *store) {
    const double MEGABYTE = 1e6;
    return fail(STATUS_MEMORY, "the rows that these rules give take more than %g MB, %s",
                (double)store->bytes_most / MEGABYTE,
                store->limited ? "the memory limit" : "most of the machine's memory");
}

Status room_ask(const Store *store) {
    enum { LITTLE = 1 << 20 }; // what is kept for the end gives it (base/memory.c)
    const RelationList *making = store->making;
    size_t bytes = constants_bytes(&store->constants),
           more = constants_growth(&store->constants, ROOM_ROWS);
    for (size_t i = 0; making && i < making->count; i++) {
        const Table *table = making->items[i]->derived;
        ASSERT(table != NULL);
        bytes += table_bytes(table);
        more += table_growth(table, ROOM_ROWS);
    }
    if (making && bytes + more > store->bytes_most) return fail_bytes(store);
    if (making && more > LITTLE) free(memory_try_resize(NULL, more)); // it notes a refusal
    return store->host.interrupted(store->host.context);
}
