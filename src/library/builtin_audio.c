// Sound: load_audio and save_audio.
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/audio_file.h"
#include "device/device.h"
#include "tensor/tensor.h"
#include "value/convert.h"

enum { CHANNELS_MAX = 1024, RATE_MAX = 1 << 24 };

// [frames, channels] becomes [channels, frames].
static Status upload(const Audio *audio, Tensor **out) {
    int64_t channels = audio->channels, frames = audio->frames;
    Shape shape = {.rank = 2, .dims = {channels, frames}};
    Device *device;
    TRY(device_default(&device));
    TRY(tensor_new(device, DTYPE_FLOAT32, &shape, out));
    size_t bytes = (size_t)(channels * frames) * sizeof *audio->numbers;
    if (bytes == 0) return STATUS_OK;
    float *numbers = memory_try_resize(NULL, bytes);
    Status status = STATUS_OK;
    if (!numbers)
        status = fail(STATUS_MEMORY, "load_audio: there is not enough memory for %lld frames",
                      (long long)frames);
    for (int64_t c = 0; c < channels && numbers; c++)
        for (int64_t i = 0; i < frames; i++)
            numbers[c * frames + i] = audio->numbers[i * channels + c];
    if (numbers) status = buffer_upload((*out)->view.buffer, 0, numbers, bytes);
    free(numbers);
    if (status != STATUS_OK) tensor_release_of(out);
    return status;
}

Value builtin_load_audio(BuiltinCall *call) {
    int64_t start = call->arguments[1].as.integer, count = -1;
    if (call->arguments[2].kind != VALUE_ABSENT && call->arguments[2].kind != VALUE_NONE) {
        TRY_VALUE(value_to_int(call->arguments[2], "count", &count));
        if (count < 0) start = -1;
    }
    if (start < 0)
        return value_failed(fail(STATUS_VALUE, "load_audio: start and count must not be negative"));
    Audio audio;
    Tensor *tensor = NULL;
    TRY_VALUE(audio_read(call->arguments[0].as.string->bytes, start, count, &audio));
    Status status = upload(&audio, &tensor);
    free(audio.numbers);
    TRY_VALUE(status);
    Value pair = value_tuple(2);
    list_push(pair.as.list, value_tensor(tensor));
    list_push(pair.as.list, value_int(audio.rate));
    return pair;
}

// The numbers of [channels, frames], from -1 to 1, as [frames, channels].
static Status read_numbers(Tensor *tensor, const Audio *audio) {
    size_t count = (size_t)tensor_count(tensor);
    int64_t channels = audio->channels, frames = audio->frames;
    SCOPED_MEMORY double *numbers = memory_allocate((count + 1) * sizeof *numbers);
    double scale = tensor_dtype(tensor) == DTYPE_INT16 ? 32768.0 : 1.0;
    Status status = tensor_read_floats(tensor, numbers);
    for (int64_t i = 0; i < channels * frames && status == STATUS_OK; i++) {
        audio->numbers[i % frames * channels + i / frames] = (float)(numbers[i] / scale);
        if (isnan(numbers[i]))
            status = fail(STATUS_VALUE, "save_audio: the sound has nan in channel %lld, frame %lld",
                          (long long)(i / frames), (long long)(i % frames));
    }
    return status;
}

static Status check_sound(const Tensor *tensor, const Audio *audio) {
    int rank = tensor_rank(tensor);
    DType dtype = tensor_dtype(tensor);
    bool sound =
        (rank == 1 || rank == 2) && audio->channels >= 1 && audio->channels <= CHANNELS_MAX;
    SCOPED_TEXT(shown);
    tensor_describe(tensor, &shown);
    Status status = STATUS_OK;
    if (!sound)
        status = fail(STATUS_SHAPE,
                      "save_audio: sound is [frames] or [channels, frames] with 1 to %d channels, "
                      "but it is %s",
                      CHANNELS_MAX, text_get(&shown));
    else if (!dtype_is_float(dtype) && dtype != DTYPE_INT16)
        status = fail(STATUS_DTYPE, "save_audio: sound is of floats or int16, but it is %s",
                      text_get(&shown));
    if (status == STATUS_OK && (audio->rate < 1 || audio->rate > RATE_MAX))
        status = fail(STATUS_VALUE, "save_audio: rate is %lld; it must be from 1 to %d",
                      (long long)audio->rate, RATE_MAX);
    return status;
}

static Status save_tensor(Tensor *tensor, const char *path, int64_t rate) {
    const int64_t *dims = tensor->view.dims;
    int rank = tensor_rank(tensor);
    Audio audio = {rank == 2 ? dims[0] : 1, rank >= 1 ? dims[rank - 1] : 0, rate, NULL};
    TRY(check_sound(tensor, &audio));
    audio.numbers = memory_allocate(((size_t)tensor_count(tensor) + 1) * sizeof *audio.numbers);
    Status status = read_numbers(tensor, &audio);
    if (status == STATUS_OK)
        status = audio_write(path, &audio, tensor_dtype(tensor) == DTYPE_INT16);
    free(audio.numbers);
    return status;
}

Value builtin_save_audio(BuiltinCall *call) {
    SCOPED_TENSOR(tensor);
    TRY_VALUE(value_to_tensor(call->arguments[0], "audio", &tensor));
    Status status =
        save_tensor(tensor, call->arguments[1].as.string->bytes, call->arguments[2].as.integer);
    return status == STATUS_OK ? value_none() : value_fail();
}
