// Pictures: load_image and save_image.
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/image_file.h"
#include "device/device.h"
#include "tensor/tensor.h"
#include "value/convert.h"
#include "value/print.h"

enum { SIDE_MAX = 1 << 16 };

// [height, width], or 0, 0 where nothing was given.
static Status size_of(Value value, int64_t size[2]) {
    size[0] = size[1] = 0;
    if (value.kind == VALUE_ABSENT || value.kind == VALUE_NONE) return STATUS_OK;
    int64_t *sizes;
    size_t count;
    TRY(value_to_ints(value, "load_image: size", &sizes, &count));
    bool sound =
        count == 2 && sizes[0] > 0 && sizes[1] > 0 && sizes[0] < SIDE_MAX && sizes[1] < SIDE_MAX;
    if (sound) memcpy(size, sizes, 2 * sizeof *size);
    free(sizes);
    if (sound) return STATUS_OK;
    return fail(STATUS_VALUE, "load_image: size must be [height, width], but it is %s",
                value_text(value).text);
}

static Status upload(const Image *image, Tensor **out) {
    Shape shape = {.rank = 3, .dims = {image->channels, image->height, image->width}};
    Device *device;
    TRY(device_default(&device));
    TRY(tensor_new(device, DTYPE_FLOAT32, &shape, out));
    size_t count = (size_t)(image->channels * image->height * image->width);
    Status status =
        buffer_upload((*out)->view.buffer, 0, image->numbers, count * sizeof *image->numbers);
    if (status != STATUS_OK) tensor_release_of(out);
    return status;
}

Value builtin_load_image(BuiltinCall *call) {
    int64_t channels = call->arguments[1].as.integer, size[2];
    TRY_VALUE(size_of(call->arguments[2], size));
    if (channels < 0 || channels > 4)
        return value_failed(fail(STATUS_VALUE,
                                 "load_image: channels is %lld; it must be from 0 to 4",
                                 (long long)channels));
    Image image;
    Tensor *tensor = NULL;
    TRY_VALUE(image_read(call->arguments[0].as.string->bytes, &image));
    Status status = image_fit(&image, channels ? channels : image.channels,
                              size[0] ? size[0] : image.height, size[1] ? size[1] : image.width);
    if (status == STATUS_OK) status = upload(&image, &tensor);
    free(image.numbers);
    return status == STATUS_OK ? value_tensor(tensor) : value_fail();
}

// The numbers of a picture from 0 to 1.
static Status read_numbers(Tensor *tensor, const Image *image) {
    size_t count = (size_t)tensor_count(tensor);
    SCOPED_MEMORY double *numbers = memory_allocate(count * sizeof *numbers);
    float scale = tensor_dtype(tensor) == DTYPE_UINT8 ? 255.0f : 1.0f;
    Status status = tensor_read_floats(tensor, numbers);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        image->numbers[i] = (float)numbers[i] / scale;
        if (isnan(numbers[i]))
            status = fail(STATUS_VALUE, "save_image: the picture has nan in channel %lld, row %lld",
                          (long long)i / (image->height * image->width),
                          (long long)i / image->width % image->height);
    }
    return status;
}

static Status save_tensor(Tensor *tensor, const char *path, int quality) {
    const int64_t *dims = tensor->view.dims;
    int rank = tensor_rank(tensor);
    DType dtype = tensor_dtype(tensor);
    Image image = {rank == 3 ? dims[0] : 1, rank >= 2 ? dims[rank - 2] : 0,
                   rank >= 2 ? dims[rank - 1] : 0, NULL};
    bool sound = (rank == 2 || rank == 3) && image.channels >= 1 && image.channels <= 4 &&
                 image.height > 0 && image.width > 0 && image.height < SIDE_MAX &&
                 image.width < SIDE_MAX;
    SCOPED_TEXT(shown);
    tensor_describe(tensor, &shown);
    Status status = STATUS_OK;
    if (!sound)
        status = fail(STATUS_SHAPE,
                      "save_image: a picture is [height, width] or [channels, height, width] with "
                      "1 to 4 channels, but it is %s",
                      text_get(&shown));
    else if (!dtype_is_float(dtype) && dtype != DTYPE_UINT8 && dtype != DTYPE_BOOL)
        status =
            fail(STATUS_DTYPE, "save_image: a picture is of floats, uint8 or bool, but it is %s",
                 text_get(&shown));
    TRY(status);
    image.numbers = memory_allocate((size_t)tensor_count(tensor) * sizeof *image.numbers);
    status = read_numbers(tensor, &image);
    if (status == STATUS_OK) status = image_write(path, &image, quality);
    free(image.numbers);
    return status;
}

Value builtin_save_image(BuiltinCall *call) {
    Tensor *tensor;
    int64_t quality = call->arguments[2].as.integer;
    if (quality < 1 || quality > 100)
        return value_failed(fail(STATUS_VALUE,
                                 "save_image: quality is %lld; it must be from 1 to 100",
                                 (long long)quality));
    TRY_VALUE(value_to_tensor(call->arguments[0], "image", &tensor));
    Status status = save_tensor(tensor, call->arguments[1].as.string->bytes, (int)quality);
    tensor_release(tensor);
    return status == STATUS_OK ? value_none() : value_fail();
}
