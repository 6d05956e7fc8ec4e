// How much a program may leave on the disk: what files take that it writes, less what they took
// before, and what a memory limit has moved out. A file counts when it is written whole; none of
// them may be larger than the limit meanwhile (RLIMIT_FSIZE).
#ifndef BASE_DISK_ROOM_H
#define BASE_DISK_ROOM_H

#include <stdbool.h>
#include <stdint.h>

// From now until the process ends.
void disk_room_limit(uint64_t bytes);
uint64_t disk_room_left(void); // UINT64_MAX: there is no limit

enum { DISK_NOTHING = -1 }; // there is no file: an empty one takes some of the disk, too
// A file of `before` bytes has `after` bytes now. False, with errno EFBIG, where that is too much:
// then it must not stay.
bool disk_room_take(int64_t before, int64_t after);

#endif
