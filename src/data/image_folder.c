// A folder of pictures: the names are kept, a picture is read when its row is wanted.
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/sandbox.h"
#include "base/text.h"
#include "data/image_file.h"
#include "data/source.h"

typedef VECTOR(char *) Names;

typedef struct FolderSource {
    DataSource source;
    Names files; // paths
    Names classes;
    VECTOR(int64_t) labels;
    bool sized; // the size was given: pictures are scaled to it
} FolderSource;

static int by_name(const void *x, const void *y) {
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static void free_names(Names *names) {
    for (size_t i = 0; i < names->count; i++) free(names->items[i]);
    VECTOR_FREE(names);
}

static char *joined(const char *folder, const char *name) {
    SCOPED_TEXT(path);
    text_format(&path, "%s/%s", folder, name);
    return memory_copy_string(text_get(&path), path.length);
}

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

// The names in a folder, sorted, without those that begin with a point.
static Status list_folder(const char *path, Names *out) {
    DIR *folder = sandbox_allows(path) ? opendir(path) : NULL;
    if (!folder) return fail(STATUS_IO, "cannot read the folder %s: %s", path, file_problem(errno));
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            VECTOR_PUSH(out, memory_copy_string(entry->d_name, strlen(entry->d_name)));
    closedir(folder);
    if (out->count) qsort(out->items, out->count, sizeof *out->items, by_name);
    return STATUS_OK;
}

static Status add_pictures(FolderSource *folder, const char *path, int64_t label) {
    Names names = {0};
    Status status = list_folder(path, &names);
    for (size_t i = 0; i < names.count; i++) {
        if (!image_is_named(names.items[i])) continue;
        VECTOR_PUSH(&folder->files, joined(path, names.items[i]));
        VECTOR_PUSH(&folder->labels, label);
    }
    free_names(&names);
    return status;
}

static Status find_pictures(FolderSource *folder, const char *path) {
    Names names = {0};
    Status status = list_folder(path, &names);
    for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
        SCOPED_MEMORY char *inside = joined(path, names.items[i]);
        if (is_folder(inside)) {
            VECTOR_PUSH(&folder->classes,
                        memory_copy_string(names.items[i], strlen(names.items[i])));
            status = add_pictures(folder, inside, (int64_t)folder->classes.count - 1);
        }
    }
    free_names(&names);
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
    free_names(&folder->files);
    free_names(&folder->classes);
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
