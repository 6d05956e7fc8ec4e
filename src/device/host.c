// Adds up what the system says of the process's memory (/proc/self/smaps), what malloc says and
// what the pool holds. Knows no values.
#include "device/host.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/file_map.h"
#include "device/pool.h"

// Of one mapping of the process.
typedef struct Mapping {
    unsigned long long begin, end;
    char path[256];
} Mapping;

// What the system has of each kind; `anonymous` is everything without a file or a name of its own.
typedef struct Resident {
    uint64_t anonymous, mapped, code, stacks;
} Resident;

static void add_mapping(const Mapping *mapping, uint64_t bytes, Resident *out) {
    char here;
    uintptr_t address = (uintptr_t)&here;
    bool file = mapping->path[0] == '/';
    if (strcmp(mapping->path, "[stack]") == 0 ||
        (address >= mapping->begin && address < mapping->end))
        out->stacks += bytes;
    else if (file && file_map_holds((const void *)(uintptr_t)mapping->begin))
        out->mapped += bytes;
    else if (file || strcmp(mapping->path, "[vdso]") == 0 || strcmp(mapping->path, "[vvar]") == 0)
        out->code += bytes;
    else
        out->anonymous += bytes;
}

static Resident read_mappings(void) {
    Resident resident = {0};
    Mapping mapping = {0};
    char line[512];
    FILE *file = fopen("/proc/self/smaps", "re");
    while (file && fgets(line, sizeof line, file)) {
        unsigned long long kilobytes, begin, end;
        char path[256] = "";
        if (sscanf(line, "Rss: %llu kB", &kilobytes) == 1)
            add_mapping(&mapping, kilobytes << 10, &resident);
        else if (sscanf(line, "%llx-%llx %*s %*s %*s %*s %255[^\n]", &begin, &end, path) >= 2)
            mapping = (Mapping){begin, end, {0}};
        else
            continue;
        if (path[0]) memcpy(mapping.path, path, sizeof path);
    }
    if (file) fclose(file);
    return resident;
}

// What was asked of the system but never touched is not resident.
static uint64_t take(uint64_t *left, uint64_t bytes) {
    uint64_t taken = bytes < *left ? bytes : *left;
    *left -= taken;
    return taken;
}

void host_state(const Device *device, uint64_t values, HostStatement *out) {
    Resident resident = read_mappings();
    PoolMemory pool = {0};
    bool own = device && device->backend->host_import;
    if (own || (device && device->software)) pool_memory(device, &pool);
    if (!own) pool = (PoolMemory){.small_bytes = pool.small_bytes + pool.large_bytes};
    struct mallinfo2 heap = mallinfo2();
    uint64_t used = heap.uordblks + heap.hblkhd, left = resident.anonymous;
    *out = (HostStatement){
        .resident = resident.anonymous + resident.mapped + resident.code + resident.stacks,
        .mapped = resident.mapped,
        .code = resident.code,
        .stacks = resident.stacks,
    };
    out->buffers = take(&left, pool.small_bytes + pool.large_bytes);
    out->tables = take(&left, used > pool.small_bytes ? used - pool.small_bytes : 0);
    out->values = take(&left, values); // of their heap much may never have been touched
    out->kept = take(&left, heap.fordblks);
    out->other = left;
    ASSERT(out->values + out->buffers + out->tables + out->kept + out->other == resident.anonymous);
}

void host_report(const HostStatement *statement, Text *out) {
    const struct {
        uint64_t bytes;
        const char *what;
    } rows[] = {
        {statement->values, "values: strings, lists, dictionaries, syntax trees"},
        {statement->tables, "tables of models, logic, the tape and libraries"},
        {statement->kept, "free, kept by malloc"},
        {statement->buffers, "buffers of devices, cached ones included"},
        {statement->mapped, "files that are read in place"},
        {statement->code, "the program and its libraries"},
        {statement->stacks, "stacks"},
        {statement->other, "other: work areas of LAPACK and of drivers"},
    };
    text_format(out, "=== Host memory: %.2f MB resident ===\n",
                (double)statement->resident / 0x1p20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        text_format(out, "%9.2f MB   %s\n", (double)rows[i].bytes / 0x1p20, rows[i].what);
}
