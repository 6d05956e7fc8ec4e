// Pages of files that nobody uses count as taken, by the machine and by groups, but can be had.
#include "device/cpu/available.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

uint64_t cpu_number_in(const char *path, const char *key) {
    unsigned long long number;
    uint64_t found = UINT64_MAX;
    size_t length = strlen(key);
    char line[256];
    FILE *file = fopen(path, "re");
    while (file && found == UINT64_MAX && fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && sscanf(line + length, "%llu", &number) == 1)
            found = number;
    if (file) fclose(file);
    return found;
}

// The files of a version of the interface.
typedef struct GroupFiles {
    const char *folder, *most, *taken, *idle;
} GroupFiles;

static uint64_t read_file(const char *folder, const char *name, const char *key) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path ? cpu_number_in(path, key) : UINT64_MAX;
}

static uint64_t available_in(const char *folder, const GroupFiles *files) {
    uint64_t most = read_file(folder, files->most, ""), taken = read_file(folder, files->taken, "");
    uint64_t idle = read_file(folder, "memory.stat", files->idle);
    if (most == UINT64_MAX || taken == UINT64_MAX) return UINT64_MAX;
    if (idle != UINT64_MAX) taken -= idle < taken ? idle : taken;
    return most > taken ? most - taken : 0;
}

// Of a group and of those around it; what is not mounted here has no files.
static uint64_t available_around(const char *mounted, const char *group, const GroupFiles *files) {
    char folder[PATH_MAX];
    int root = snprintf(folder, sizeof folder, "%s%s", mounted, files->folder);
    int length = snprintf(folder, sizeof folder, "%s%s%s", mounted, files->folder, group);
    uint64_t least = UINT64_MAX;
    if (length < 0 || (size_t)length >= sizeof folder) return least;
    for (char *end = folder + length; end && end - folder >= root; end = strrchr(folder, '/')) {
        *end = '\0';
        uint64_t here = available_in(folder, files);
        if (here < least) least = here;
    }
    return least;
}

uint64_t cpu_group_available(const char *groups, const char *mounted) {
    static const GroupFiles first = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                     "total_inactive_file "};
    static const GroupFiles second = {"", "memory.max", "memory.current", "inactive_file "};
    char line[PATH_MAX + 64];
    uint64_t least = UINT64_MAX;
    FILE *file = fopen(groups, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'),
             *group = controllers ? strchr(controllers + 1, ':') : 0;
        if (!group) continue;
        bool is_first = strncmp(controllers, ":memory:", 8) == 0;
        if (!is_first && group != controllers + 1) continue;
        uint64_t here = available_around(mounted, group + 1, is_first ? &first : &second);
        if (here < least) least = here;
    }
    if (file) fclose(file);
    return least;
}

uint64_t cpu_available(const Device *device) {
    uint64_t group = cpu_group_available("/proc/self/cgroup", "/sys/fs/cgroup");
    uint64_t kilobytes = cpu_number_in("/proc/meminfo", "MemAvailable:");
    uint64_t machine = kilobytes == UINT64_MAX ? device->own_bytes : kilobytes << 10;
    return group < machine ? group : machine;
}
