// Confines the process to a folder by Landlock. Source: the kernel's documentation of its three
// system calls.
#define _GNU_SOURCE // O_PATH
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/disk_room.h"
#include "base/memory.h"

// Rights that are newer than the headers of Debian 12.
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

enum { VERSION_WITH_REFER = 2, VERSION_WITH_TRUNCATE = 3, VERSION_WITH_TCP = 4 };

// What is withheld; the headers of Debian 12 know the first of them only.
typedef struct Withheld {
    uint64_t files, tcp;
} Withheld;

static const uint64_t tcp_rights = 3; // to bind a port, and to connect to one

static const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t first_rights = LANDLOCK_ACCESS_FS_REFER - 1; // those of version 1
// What may be asked for a file that is not a folder.
static const uint64_t file_rights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;

// Opened after the start by libraries: their own files, fonts, and what drivers of GPUs talk to.
static const struct {
    const char *path;
    bool writable;
} system_paths[] = {
    {"/lib", false},
    {"/lib64", false},
    {"/usr/lib", false},
    {"/usr/local/lib", false},
    {"/etc/ld.so.cache", false},
    {"/etc/fonts", false},
    {"/usr/share/fonts", false},
    {"/usr/share/fontconfig", false},
    {"/var/cache/fontconfig", false},
    {"/usr/share/vulkan", false},
    {"/etc/vulkan", false},
    {"/usr/local/nvidia", false},
    {"/sys/devices", false},
    {"/proc/cpuinfo", false},
    {"/proc/stat", false},
    {"/proc/driver/nvidia", false},
    {"/dev/null", true},
    {"/dev/dri", true},
    {"/dev/nvidia0", true},
    {"/dev/nvidiactl", true},
    {"/dev/nvidia-uvm", true},
};

static const char *sandbox_folder; // NULL outside a sandbox
static VECTOR(char *) allowed;     // what its program may read, without links; for good

static void note_allowed(const char *path) {
    char *resolved = realpath(path, NULL);
    if (resolved) VECTOR_PUSH(&allowed, resolved);
}

static Status allow(int ruleset, const char *path, uint64_t rights) {
    int file = open(path, O_PATH | O_CLOEXEC);
    if (file < 0) return fail(STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    struct stat about;
    if (fstat(file, &about) == 0 && !S_ISDIR(about.st_mode)) rights &= file_rights;
    struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = file};
    ASSERT(ruleset >= 0 && rights != 0);
    long result = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    int error = errno;
    close(file);
    if (result == 0) return STATUS_OK;
    return fail(STATUS_SETTING, "cannot confine files to %s: %s", path, strerror(error));
}

static Status allow_all(int ruleset, const Sandbox *sandbox, uint64_t rights) {
    for (size_t i = 0; i < sizeof system_paths / sizeof *system_paths; i++) {
        if (access(system_paths[i].path, F_OK) != 0) continue;
        uint64_t wanted = reading | LANDLOCK_ACCESS_FS_EXECUTE;
        if (system_paths[i].writable) wanted |= LANDLOCK_ACCESS_FS_WRITE_FILE;
        TRY(allow(ruleset, system_paths[i].path, wanted & rights));
    }
    TRY(allow(ruleset, "/proc/self/exe",
              (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE)));
    for (size_t i = 0; i < sandbox->readable_count; i++)
        if (access(sandbox->readable[i], F_OK) == 0)
            TRY(allow(ruleset, sandbox->readable[i], reading & rights));
    return allow(ruleset, sandbox->folder, rights);
}

// What this kernel can withhold; no files when it has no Landlock.
static Withheld known_rights(void) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    Withheld rights = {.files = version > 0 ? first_rights : 0};
    if (version >= VERSION_WITH_REFER) rights.files |= LANDLOCK_ACCESS_FS_REFER;
    if (version >= VERSION_WITH_TRUNCATE) rights.files |= LANDLOCK_ACCESS_FS_TRUNCATE;
    if (version >= VERSION_WITH_TCP) rights.tcp = tcp_rights;
    return rights;
}

Status sandbox_enter(const Sandbox *sandbox) {
    struct stat about;
    const char *folder = sandbox->folder;
    if (stat(folder, &about) != 0 || !S_ISDIR(about.st_mode))
        return fail(STATUS_IO, "--sandbox: %s is not a folder", folder);
    Withheld withheld = known_rights();
    if (withheld.files == 0)
        return fail(STATUS_SETTING, "--sandbox: this system cannot confine a process to a folder "
                                    "(Landlock, Linux 5.13)");
    if (!sandbox->offline) withheld.tcp = 0;
    size_t size = withheld.tcp ? sizeof withheld : sizeof withheld.files; // older ones take one
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &withheld, size, 0);
    if (ruleset < 0) return fail(STATUS_SETTING, "--sandbox: %s", strerror(errno));
    Status status = allow_all(ruleset, sandbox, withheld.files);
    if (status == STATUS_OK && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                                syscall(SYS_landlock_restrict_self, ruleset, 0) != 0))
        status = fail(STATUS_SETTING, "--sandbox: %s", strerror(errno));
    close(ruleset);
    ASSERT(sandbox_folder == NULL);
    if (status != STATUS_OK) return status;
    sandbox_folder = folder;
    note_allowed(folder);
    for (size_t i = 0; i < sandbox->readable_count; i++) note_allowed(sandbox->readable[i]);
    return status;
}

static bool is_below(const char *path, const char *folder) {
    size_t length = strlen(folder);
    if (strcmp(folder, "/") == 0) return true;
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

// Where a path leads: of one that leads nowhere, the part of it that is there. Nothing where there
// is something without a name, such as a pipe.
static bool resolve(const char *path, char resolved[PATH_MAX]) {
    struct stat about;
    if (realpath(path, resolved)) return true;
    if (stat(path, &about) == 0) return false;
    SCOPED_MEMORY char *part = memory_copy_string(path, strlen(path));
    for (char *slash; (slash = strrchr(part, '/'));) {
        slash[slash == part] = '\0';
        if (realpath(part, resolved)) return true;
        if (slash == part) return false;
    }
    return realpath(".", resolved) != NULL;
}

bool sandbox_allows(const char *path) {
    char resolved[PATH_MAX];
    int found = errno;
    // What has no name the kernel decides.
    if (!sandbox_folder || !resolve(path, resolved)) return true;
    errno = found;
    for (size_t i = 0; i < allowed.count; i++)
        if (is_below(resolved, allowed.items[i])) return true;
    errno = EACCES;
    return false;
}

const char *file_problem(int error) {
    static _Thread_local char words[512];
    if (error == EFBIG && disk_room_left() < UINT64_MAX) {
        snprintf(words, sizeof words, "%s (--disk-limit leaves %llu bytes)", strerror(error),
                 (unsigned long long)disk_room_left());
        return words;
    }
    if (error != EACCES || !sandbox_folder) return strerror(error);
    snprintf(words, sizeof words, "%s (the program may touch only files in %s, by --sandbox)",
             strerror(error), sandbox_folder);
    return words;
}
