// Sound of files as numbers.
#ifndef DATA_AUDIO_FILE_H
#define DATA_AUDIO_FILE_H

#include "base/status.h"

typedef struct Audio {
    int64_t channels, frames, rate; // rate: frames in a second
    float *numbers;                 // [frames, channels], from -1 to 1; from malloc
} Audio;

// `count` frames from `start` on, or up to the end where count is negative, of what libsndfile
// reads: WAV, FLAC, Ogg, MP3, AIFF, AU and others, by content. STATUS_FORMAT names the file and
// what is wrong.
Status audio_read(const char *path, int64_t start, int64_t count, Audio *out) MUST_USE;
// In the format that the path's ending names; numbers outside -1 to 1 are clipped. `short_samples`:
// 16 bits where the format has a choice, else all bits of a float, or of what it can hold.
Status audio_write(const char *path, const Audio *audio, bool short_samples) MUST_USE;

#endif
