// Runs a fuzz target over every file of the folders given: the corpus as an ordinary test.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>

#include "base/file_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static int replay_file(const char *path) {
    FileMap *map;
    if (file_map_open(path, &map) != STATUS_OK) return 0; // a folder
    LLVMFuzzerTestOneInput(file_map_bytes(map), file_map_length(map));
    file_map_release(map);
    return 1;
}

int main(int count, char **arguments) {
    int files = 0;
    for (int i = 1; i < count; i++) {
        DIR *folder = opendir(arguments[i]);
        for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", arguments[i], entry->d_name);
            files += replay_file(path);
        }
        if (folder) closedir(folder);
    }
    printf("%d files replayed\n", files);
    return files == 0; // an empty corpus tests nothing
}
