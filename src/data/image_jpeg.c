// JPEG by libjpeg-turbo's own interface, which returns its errors.
#include <stdlib.h>
#include <turbojpeg.h>

#include "base/file_replace.h"
#include "base/library.h"
#include "data/image_format.h"

// clang-format off
#define JPEG_FUNCTIONS(F) \
    F(tj, InitDecompress) F(tj, InitCompress) F(tj, DecompressHeader3) F(tj, Decompress2) \
    F(tj, Compress2) F(tj, GetErrorStr2) F(tj, Destroy) F(tj, Free)
// clang-format on
LIBRARY(jpeg_library, JPEG_FUNCTIONS, .file = "libturbojpeg.so.0", .purpose = ".jpg pictures",
        .package = "libturbojpeg0");

static bool recognise_jpeg(const ImageBytes *file) {
    return image_begins(file, "\xff\xd8\xff", 3);
}

// Inks as Adobe's programs write them, 255 for none: each colour is what its ink and black leave.
static void mix_inks(const Pixels *inks, Pixels *out) {
    const uint8_t *from = inks->samples;
    uint8_t *to = out->samples;
    for (int64_t i = 0; i < out->height * out->width; i++)
        for (int c = 0; c < 3; c++)
            to[i * 3 + c] = (uint8_t)((from[i * 4 + c] * from[i * 4 + 3] + 127) / 255);
}

static Status decode(tjhandle jpeg, const ImageBytes *file, Pixels *out) {
    int width, height, sampling, colours;
    unsigned long length = file->length;
    if (jpeg_library.DecompressHeader3(jpeg, file->bytes, length, &width, &height, &sampling,
                                       &colours) != 0)
        return fail(STATUS_FORMAT, "%s: %s", file->path, jpeg_library.GetErrorStr2(jpeg));
    bool gray = colours == TJCS_GRAY, inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
    int layout = gray ? TJPF_GRAY : inks ? TJPF_CMYK : TJPF_RGB;
    *out = (Pixels){gray ? 1 : inks ? 4 : 3, height, width, 255, NULL};
    TRY(pixels_new(file->path, out));
    int flags = TJFLAG_LIMITSCANS | TJFLAG_ACCURATEDCT;
    if (jpeg_library.Decompress2(jpeg, file->bytes, length, out->samples, width, 0, height, layout,
                                 flags) != 0) {
        // Libjpeg goes on after oddities, as other programs do; half a picture is none.
        const char *problem = jpeg_library.GetErrorStr2(jpeg);
        bool odd = strstr(problem, "extraneous bytes") || strstr(problem, "Inconsistent progress");
        if (!odd) return fail(STATUS_FORMAT, "%s: %s", file->path, problem);
    }
    if (!inks) return STATUS_OK;
    Pixels four = *out;
    out->channels = 3;
    out->samples = NULL;
    Status status = pixels_new(file->path, out);
    if (status == STATUS_OK) mix_inks(&four, out);
    free(four.samples);
    return status;
}

static Status read_jpeg(const ImageBytes *file, Pixels *out) {
    TRY(library_load(&library));
    tjhandle jpeg = jpeg_library.InitDecompress();
    if (!jpeg) return fail(STATUS_MEMORY, "%s: libjpeg has no memory", file->path);
    Status status = decode(jpeg, file, out);
    jpeg_library.Destroy(jpeg);
    return status;
}

static Status write_jpeg(const Pixels *pixels, int quality, FILE *stream) {
    TRY(library_load(&library));
    tjhandle jpeg = jpeg_library.InitCompress();
    if (!jpeg) return fail(STATUS_MEMORY, "libjpeg has no memory");
    bool gray = pixels->channels == 1;
    unsigned char *bytes = NULL;
    unsigned long length = 0;
    int problem = jpeg_library.Compress2(jpeg, pixels->samples, (int)pixels->width, 0,
                                         (int)pixels->height, gray ? TJPF_GRAY : TJPF_RGB, &bytes,
                                         &length, gray ? TJSAMP_GRAY : TJSAMP_420, quality, 0);
    Status status = problem ? fail(STATUS_FORMAT, "libjpeg: %s", jpeg_library.GetErrorStr2(jpeg))
                            : stream_write(stream, bytes, length);
    jpeg_library.Free(bytes);
    jpeg_library.Destroy(jpeg);
    return status;
}

const ImageFormat image_jpeg = {.name = "JPEG",
                                .endings = {".jpg", ".jpeg"},
                                .channels = 1 << 1 | 1 << 3,
                                .recognise = recognise_jpeg,
                                .read = read_jpeg,
                                .write = write_jpeg};
