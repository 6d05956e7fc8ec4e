// Fuzzes the reader of files of facts, behind their checksum.
#include <stddef.h>
#include <stdint.h>

#include "logic/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    StoreHost host = {0};
    Store *store = store_new(&host);
    Relation *city = entity_type_new(store, "City", false);
    Column columns[] = {{.name = "a", .kind = COLUMN_ENTITY, .type = city},
                        {.name = "b", .kind = COLUMN_ANY}};
    relation_new(store, "Road", columns, 2);
    uint64_t added;
    if (store_load_bytes(&(Archive){.store = store}, bytes, length, &added) != STATUS_OK)
        error_clear();
    store_free(store);
    return 0;
}
