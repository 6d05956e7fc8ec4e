// A table that the system refuses to let grow could not be ended in order: it is asked before.
#include "logic/room.h"

#include <stdlib.h>
#include <unistd.h>

static uint64_t machine_bytes(void) {
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

// Recursion without a bound is ended before it has all of the machine's memory, too.
static Status fail_bytes(const Store *store, size_t bytes) {
    const double MEGABYTE = 1e6;
    bool limited = store->limit > 0;
    uint64_t most = limited ? store->limit : machine_bytes() / 8 * 7;
    if (bytes <= most) return STATUS_OK;
    return fail(STATUS_MEMORY, "the rows that these rules give take more than %g MB, %s",
                (double)most / MEGABYTE,
                limited ? "the memory limit" : "most of the machine's memory");
}

Status room_ask(const Store *store) {
    enum { LITTLE = 1 << 20 }; // what is kept for the end gives it (base/memory.c)
    const RelationList *making = store->making;
    size_t bytes = constants_bytes(&store->constants);
    size_t more = constants_growth(&store->constants, ROOM_ROWS);
    for (size_t i = 0; making && i < making->count; i++) {
        const Table *table = making->items[i]->derived;
        ASSERT(table != NULL);
        bytes += table_bytes(table);
        more += table_growth(table, ROOM_ROWS);
    }
    if (making && store->endless) TRY(fail_bytes(store, bytes + more));
    if (making && more > LITTLE) free(memory_try_resize(NULL, more)); // it notes a refusal
    return store->host.interrupted(store->host.context);
}
