// The files of kept texts in a folder as bytes and ages: what makes room. Knows no texts.
#ifndef GENERATE_PROMPT_CACHE_ROOM_H
#define GENERATE_PROMPT_CACHE_ROOM_H

#include <stdint.h>

// It was used just now.
void kept_file_touch(const char *path);
// Files of kept texts, of any network, go, those used longest ago first, until at most `bytes_max`
// are left; and parts of files whose writer was killed.
void kept_files_trim(const char *folder, uint64_t bytes_max);

#endif
