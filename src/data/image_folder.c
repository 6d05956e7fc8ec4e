// A folder of pictures: the names are kept, a picture is read when its row is wanted.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/memory.h"
#include "base/sandbox.h"
#include "base/text.h"
#include "data/image_file.h"
#include "data/source.h"

typedef struct FolderSource {
    DataSource source;
    FolderNames files; // paths
    FolderNames classes;
    VECTOR(int64_t) labels;
    bool sized; // the size was given: pictures are scaled to it
} FolderSource;

static char *joined(const char *folder, const char *name) {
    SCOPED_TEXT(path);
    text_format(&path, "%s/%s", folder, name);
    return memory_copy_string(text_get(&path), path.length);
}

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static Status list_folder(const char *path, FolderNames *out) {
    if (folder_list(path, out)) return STATUS_OK;
    return fail(STATUS_IO, "cannot read the folder %s: %s", path, file_problem(errno));
}

static Status add_pictures(FolderSource *folder, const char *path, int64_t label) {
    FolderNames names = {0};
    Status status = list_folder(path, &names);
    for (size_t i = 0; i < names.count; i++) {
        if (names.items[i][0] == '.' || !image_is_named(names.items[i])) continue;
        VECTOR_PUSH(&folder->files, joined(path, names.items[i]));
        VECTOR_PUSH(&folder->labels, label);
    }
    folder_names_free(&names);
    return status;
}

static Status find_pictures(FolderSource *folder, const char *path) {
    FolderNames names = {0};
    Status status = list_folder(path, &names);
    for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
        SCOPED_MEMORY char *inside = joined(path, names.items[i]);
        if (names.items[i][0] != '.' && is_folder(inside)) {
            VECTOR_PUSH(&folder->classes,
                        memory_copy_string(names.items[i], strlen(names.items[i])));
            status = add_pictures(folder, inside, (int64_t)folder->classes.count - 1);
        }
    }
    folder_names_free(&names);
    if (status == STATUS_OK && folder->classes.count == 0) status = add_pictures(folder, path, 0);
    if (status == STATUS_OK && folder->files.count == 0)
        status = fail(STATUS_VALUE,
                      "there are no pictures (.png, .jpg, .webp, .bmp, .pgm, .ppm) in %s", path);
    return status;
}

static Status read_picture(const DataSource *source, int64_t row, void *const *fields) {
    const FolderSource *folder = (const FolderSource *)source;
    const char *path = folder->files.items[row];
    const int64_t *dims = source->fields[0].shape.dims;
    Image image;
    TRY(image_read(path, &image));
    if (!folder->sized && (image.height != dims[1] || image.width != dims[2])) {
        free(image.numbers);
        (void)fail(STATUS_SHAPE, "%s is %lld x %lld, but the first picture is %lld x %lld", path,
                   (long long)image.height, (long long)image.width, (long long)dims[1],
                   (long long)dims[2]);
        return fail_help("size: [height, width] scales all of them");
    }
    Status status = image_fit(&image, dims[0], dims[1], dims[2]);
    if (status == STATUS_OK) memcpy(fields[0], image.numbers, data_field_bytes(&source->fields[0]));
    free(image.numbers);
    TRY(status);
    if (source->n_fields > 1) *(int64_t *)fields[1] = folder->labels.items[row];
    return STATUS_OK;
}

static void free_folder(DataSource *source) {
    FolderSource *folder = (FolderSource *)source;
    folder_names_free(&folder->files);
    folder_names_free(&folder->classes);
    VECTOR_FREE(&folder->labels);
    free(folder);
}

static Status open_folder(FolderSource *folder, const char *path, const ImageWish *wish) {
    Image first;
    TRY(find_pictures(folder, path));
    TRY(image_read(folder->files.items[0], &first));
    free(first.numbers);
    folder->sized = wish->height > 0;
    Shape shape = {.rank = 3,
                   .dims = {wish->gray || first.channels < 3 ? 1 : 3,
                            folder->sized ? wish->height : first.height,
                            folder->sized ? wish->width : first.width}};
    folder->source =
        (DataSource){.count = (int64_t)folder->files.count,
                     .n_fields = folder->classes.count > 0 ? 2 : 1,
                     .fields = {{.dtype = DTYPE_FLOAT32, .shape = shape}, {.dtype = DTYPE_INT64}},
                     .read = read_picture,
                     .free = free_folder,
                     .classes = folder->classes.items,
                     .class_count = folder->classes.count};
    return STATUS_OK;
}

Status data_open_images(const char *path, const ImageWish *wish, DataSource **out) {
    FolderSource *folder = memory_allocate_zeroed(1, sizeof *folder);
    Status status = open_folder(folder, path, wish);
    if (status == STATUS_OK)
        *out = &folder->source;
    else
        free_folder(&folder->source);
    return status;
}
