// Sound by libsndfile, which reads the bytes of a mapped file.
#include "data/audio_file.h"

#include <errno.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file_map.h"
#include "base/file_replace.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/sandbox.h"

// clang-format off
#define SOUND_FUNCTIONS(F) \
    F(sf_, open) F(sf_, open_virtual) F(sf_, close) F(sf_, seek) F(sf_, strerror) F(sf_, error) \
    F(sf_, command) F(sf_, format_check) F(sf_, readf_float) F(sf_, writef_float)
// clang-format on
LIBRARY(sound_library, SOUND_FUNCTIONS, .file = "libsndfile.so.1", .purpose = "files of sound",
        .package = "libsndfile1");

// --- reading

typedef struct Stream {
    const uint8_t *bytes;
    sf_count_t length, at;
} Stream;

static sf_count_t stream_length(void *context) {
    return ((Stream *)context)->length;
}

static sf_count_t stream_seek(sf_count_t offset, int whence, void *context) {
    Stream *stream = context;
    sf_count_t from = whence == SEEK_CUR ? stream->at : whence == SEEK_END ? stream->length : 0;
    sf_count_t at;
    bool beyond = __builtin_add_overflow(from, offset, &at) || at < 0 || at > stream->length;
    if (!beyond) stream->at = at;
    return beyond ? -1 : at;
}

static sf_count_t stream_read(void *out, sf_count_t count, void *context) {
    Stream *stream = context;
    sf_count_t rest = stream->length - stream->at;
    if (count > rest) count = rest;
    if (count <= 0) return 0;
    memcpy(out, stream->bytes + stream->at, (size_t)count);
    stream->at += count;
    return count;
}

static sf_count_t stream_write_nothing(const void *bytes, sf_count_t count, void *context) {
    (void)bytes, (void)count, (void)context;
    return 0;
}

static sf_count_t stream_tell(void *context) {
    return ((Stream *)context)->at;
}

enum { FRAMES_MORE = 1 << 16 };

// Room grows with what is really there: a header may say anything.
static Status read_frames(SNDFILE *sound, const char *path, int64_t wanted, Audio *out) {
    size_t channels = (size_t)out->channels;
    int64_t room = 0;
    while (wanted < 0 || out->frames < wanted) {
        if (out->frames == room) {
            room = room ? room + room / 2 : FRAMES_MORE;
            float *more =
                memory_try_resize(out->numbers, (size_t)room * channels * sizeof *out->numbers);
            if (!more)
                return fail(STATUS_MEMORY, "%s: there is not enough memory for %lld frames", path,
                            (long long)room);
            out->numbers = more;
        }
        int64_t count = room - out->frames;
        if (wanted >= 0 && count > wanted - out->frames) count = wanted - out->frames;
        int64_t got =
            sound_library.readf_float(sound, out->numbers + (size_t)out->frames * channels, count);
        if (sound_library.error(sound))
            return fail(STATUS_FORMAT, "%s: %s", path, sound_library.strerror(sound));
        out->frames += got;
        if (got < count) break;
    }
    return STATUS_OK;
}

static Status read_sound(SNDFILE *sound, const SF_INFO *info, const char *path, int64_t range[2],
                         Audio *out) {
    int64_t start = range[0], count = range[1];
    *out = (Audio){.channels = info->channels, .rate = info->samplerate};
    if (info->channels < 1 || info->samplerate < 1)
        return fail(STATUS_FORMAT, "%s has %d channels at %d frames a second", path, info->channels,
                    info->samplerate);
    if (start > info->frames || (start > 0 && sound_library.seek(sound, start, SEEK_SET) != start))
        return fail(STATUS_INDEX, "%s has %lld frames; none can be read from %lld on", path,
                    (long long)info->frames, (long long)start);
    return read_frames(sound, path, count, out);
}

Status audio_read(const char *path, int64_t start, int64_t count, Audio *out) {
    ASSERT(start >= 0);
    static SF_VIRTUAL_IO reader = {stream_length, stream_seek, stream_read, stream_write_nothing,
                                   stream_tell};
    TRY(library_load(&library));
    FileMap *map;
    TRY(file_map_open(path, &map));
    Stream stream = {file_map_bytes(map), (sf_count_t)file_map_length(map), 0};
    SF_INFO info = {0};
    *out = (Audio){0};
    SNDFILE *sound = sound_library.open_virtual(&reader, SFM_READ, &info, &stream);
    Status status = STATUS_OK;
    if (sound)
        status = read_sound(sound, &info, path, (int64_t[]){start, count}, out);
    else
        status = fail(STATUS_FORMAT, "%s: %s", path, sound_library.strerror(NULL));
    if (sound) sound_library.close(sound);
    if (status == STATUS_OK) status = file_map_faults();
    file_map_release(map);
    if (status != STATUS_OK) free(out->numbers);
    return status;
}

// --- writing

typedef struct SoundFormat {
    const char *ending;
    int container, full, shortened; // the encodings of floats and of 16 bits
} SoundFormat;

static const SoundFormat formats[] = {
    {".wav", SF_FORMAT_WAV, SF_FORMAT_FLOAT, SF_FORMAT_PCM_16},
    {".flac", SF_FORMAT_FLAC, SF_FORMAT_PCM_24, SF_FORMAT_PCM_16},
    {".ogg", SF_FORMAT_OGG, SF_FORMAT_VORBIS, SF_FORMAT_VORBIS},
    {".opus", SF_FORMAT_OGG, SF_FORMAT_OPUS, SF_FORMAT_OPUS},
    {".mp3", SF_FORMAT_MPEG, SF_FORMAT_MPEG_LAYER_III, SF_FORMAT_MPEG_LAYER_III},
    {".aiff", SF_FORMAT_AIFF, SF_FORMAT_FLOAT, SF_FORMAT_PCM_16},
    {".au", SF_FORMAT_AU, SF_FORMAT_FLOAT, SF_FORMAT_PCM_16},
};

static const SoundFormat *format_named(const char *path) {
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t size = strlen(formats[i].ending);
        if (length > size && strcasecmp(path + length - size, formats[i].ending) == 0)
            return &formats[i];
    }
    return NULL;
}

typedef struct Writing {
    const char *path;
    const Audio *audio;
    SF_INFO info;
} Writing;

// Encoders have words of their own for a disk that is full.
static Status fail_sound(const Writing *writing, const char *why) {
    bool full = errno == ENOSPC || errno == EFBIG || errno == EDQUOT;
    return fail(STATUS_IO, "cannot write %s: %s", writing->path, full ? file_problem(errno) : why);
}

static Status write_part(const char *part, void *context) {
    Writing *writing = context;
    errno = 0;
    const Audio *audio = writing->audio;
    SNDFILE *sound = sound_library.open(part, SFM_WRITE, &writing->info);
    if (!sound) return fail_sound(writing, sound_library.strerror(NULL));
    sound_library.command(sound, SFC_SET_CLIPPING, NULL, SF_TRUE);
    // The same numbers make the same bytes: no time of writing.
    sound_library.command(sound, SFC_SET_ADD_PEAK_CHUNK, NULL, SF_FALSE);
    int64_t done = 0;
    while (done < audio->frames) { // encoders keep a block on their stack
        int64_t rest = audio->frames - done, count = rest < FRAMES_MORE ? rest : FRAMES_MORE;
        if (sound_library.writef_float(sound, audio->numbers + done * audio->channels, count) !=
            count)
            break;
        done += count;
    }
    Status status = STATUS_OK;
    if (done < audio->frames) status = fail_sound(writing, sound_library.strerror(sound));
    int problem = sound_library.close(sound);
    if (status == STATUS_OK && problem) status = fail_sound(writing, "the encoder has failed");
    return status;
}

Status audio_write(const char *path, const Audio *audio, bool short_samples) {
    ASSERT(audio->channels >= 1 && audio->rate >= 1);
    TRY(library_load(&library));
    const SoundFormat *format = format_named(path);
    if (!format)
        return fail(STATUS_VALUE,
                    "%s: sound is written to .wav, .flac, .ogg, .opus, .mp3, .aiff and .au", path);
    Writing writing = {
        .path = path,
        .audio = audio,
        .info = {.channels = (int)audio->channels,
                 .samplerate = (int)audio->rate,
                 .format = format->container | (short_samples ? format->shortened : format->full)}};
    if (!sound_library.format_check(&writing.info))
        return fail(STATUS_VALUE, "%s: a %s file cannot have %lld channels at %lld frames a second",
                    path, format->ending, (long long)audio->channels, (long long)audio->rate);
    return file_replace(path, write_part, &writing);
}
