// Arrays in zip archives: members are read and written one at a time, so that an archive never lies
// in memory a second time.
#include "model/npz.h"

#include <stdlib.h>
#include <zip.h>

#include "base/file_map.h"
#include "base/file_replace.h"
#include "base/library.h"
#include "model/named_texts.h"
#include "model/npy.h"
#include "model/reader.h"

// clang-format off
#define ZIP_FUNCTIONS(F) \
    F(zip_, source_buffer_create) F(zip_, source_function) F(zip_, source_free) \
    F(zip_, open_from_source) F(zip_, open) F(zip_, close) F(zip_, discard) \
    F(zip_, get_num_entries) F(zip_, stat_index) F(zip_, stat_init) F(zip_, fopen_index) \
    F(zip_, fread) F(zip_, fclose) F(zip_, file_add) F(zip_, set_file_compression) \
    F(zip_, file_set_dostime) F(zip_, error_init) F(zip_, error_init_with_code) \
    F(zip_, error_fini) F(zip_, error_strerror) F(zip_, get_error) F(zip_, file_get_error)
// clang-format on
LIBRARY(zip_library, ZIP_FUNCTIONS, .file = TL_ZIP_LIBRARY, .purpose = ".npz files",
        .package = TL_ZIP_PACKAGE);

static const char ending[] = ".npy";
enum { ENDING_BYTES = sizeof ending - 1 };

bool npz_begins(const uint8_t *bytes, size_t length) {
    return length >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || memcmp(bytes, "PK\5\6", 4) == 0);
}

// Records what libzip says about an archive, and closes that.
static Status fail_zip(const char *name, zip_error_t *error) {
    Status status = fail(STATUS_FORMAT, "%s: %s", name, zip_library.error_strerror(error));
    zip_library.error_fini(error);
    return status;
}

// --- reading

// Deflate makes at most 1032 bytes of one: a member that claims more lies.
enum { DEFLATE_RATIO_MAX = 1032, DEFLATE_SLACK_BYTES = 1024 };

typedef struct MemberSource {
    NpySource source;
    zip_file_t *file;
} MemberSource;

static Status read_member(NpySource *source, void *out, size_t bytes) {
    MemberSource *member = (MemberSource *)source;
    zip_int64_t count = zip_library.fread(member->file, out, bytes);
    if (count == (zip_int64_t)bytes) return STATUS_OK;
    if (count >= 0) return fail(STATUS_FORMAT, "%s: its bytes end too early", source->name);
    return fail(STATUS_FORMAT, "%s: %s", source->name,
                zip_library.error_strerror(zip_library.file_get_error(member->file)));
}

// libzip compares the checksum when it comes to the end.
static Status read_to_end(MemberSource *member, Tensor **out) {
    Tensor *tensor = NULL;
    char more;
    TRY(npy_read_source(&member->source, &tensor));
    zip_int64_t count = zip_library.fread(member->file, &more, 1);
    if (count == 0) {
        *out = tensor;
        return STATUS_OK;
    }
    tensor_release(tensor);
    if (count > 0) return fail(STATUS_FORMAT, "%s is longer than it says", member->source.name);
    return read_member(&member->source, &more, 1);
}

typedef struct Archive {
    zip_t *zip;
    const char *name;
    size_t length;
    zip_uint64_t claimed; // compressed bytes of the members so far
    NamedTensors *out;
} Archive;

static Status check_member(Archive *archive, const zip_stat_t *about, const char *name) {
    const zip_uint64_t wanted = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
    if ((about->valid & wanted) != wanted)
        return fail(STATUS_FORMAT, "%s has no name or no size", name);
    size_t length = strlen(about->name);
    if (length < ENDING_BYTES || strcmp(about->name + length - ENDING_BYTES, ending) != 0)
        return fail(STATUS_FORMAT, "%s is not a .npy array", name);
    // Members that share their bytes would make a small file a large one.
    if (about->comp_size > archive->length - archive->claimed)
        return fail(STATUS_FORMAT, "%s claims %llu bytes of an archive of %zu", name,
                    (unsigned long long)about->comp_size, archive->length);
    archive->claimed += about->comp_size;
    if (about->size / DEFLATE_RATIO_MAX > about->comp_size + DEFLATE_SLACK_BYTES)
        return fail(STATUS_FORMAT, "%s claims to become %llu bytes from %llu", name,
                    (unsigned long long)about->size, (unsigned long long)about->comp_size);
    return STATUS_OK;
}

static Status read_array(Archive *archive, zip_uint64_t index, const zip_stat_t *about,
                         const char *name) {
    MemberSource member = {.source = {.name = name, .length = about->size, .read = read_member}};
    member.file = zip_library.fopen_index(archive->zip, index, 0);
    if (!member.file)
        return fail(STATUS_FORMAT, "%s: %s", name,
                    zip_library.error_strerror(zip_library.get_error(archive->zip)));
    Tensor *tensor = NULL;
    Status status = read_to_end(&member, &tensor);
    zip_library.fclose(member.file);
    TRY(status);
    SCOPED_MEMORY char *word = memory_copy_string(about->name, strlen(about->name) - ENDING_BYTES);
    if (named_tensors_find(archive->out, word)) {
        status = fail(STATUS_FORMAT, "%s comes twice", name);
        tensor_release(tensor);
    } else {
        named_tensors_add(archive->out, word, tensor);
    }
    return status;
}

static Status read_members(Archive *archive) {
    zip_int64_t count = zip_library.get_num_entries(archive->zip, 0);
    SCOPED_TEXT(name);
    Status status = STATUS_OK;
    for (zip_int64_t i = 0; i < count && status == STATUS_OK; i++) {
        zip_stat_t about;
        zip_library.stat_init(&about);
        (void)zip_library.stat_index(archive->zip, (zip_uint64_t)i, 0, &about);
        text_clear(&name);
        text_format(&name, "%s: member `%.80s`", archive->name, about.name ? about.name : "");
        status = check_member(archive, &about, text_get(&name));
        if (status == STATUS_OK)
            status = read_array(archive, (zip_uint64_t)i, &about, text_get(&name));
    }
    return status;
}

// Texts are bytes of JSON in an array of this name.
static const char texts_name[] = "__metadata__";

static Status take_texts(NamedTensors *out) {
    Tensor *tensor = named_tensors_find(out, texts_name);
    if (!tensor || tensor_dtype(tensor) != DTYPE_UINT8) return STATUS_OK;
    void *bytes;
    size_t length;
    TRY(stored_download(tensor, &bytes, &length));
    json_error_t error;
    json_t *object = json_loadb(bytes, length, 0, &error);
    free(bytes);
    if (!json_is_object(object)) {
        json_decref(object);
        return STATUS_OK;
    }
    named_texts_unpack(out, object);
    json_decref(object);
    named_tensors_remove(out, texts_name);
    return STATUS_OK;
}

Status npz_parse(const uint8_t *bytes, size_t length, const char *name, NamedTensors *out) {
    *out = (NamedTensors){0};
    if (!npz_begins(bytes, length))
        return fail(STATUS_FORMAT, "%s does not begin as a zip archive does", name);
    TRY(library_load(&library));
    zip_error_t error;
    zip_library.error_init(&error);
    zip_source_t *source = zip_library.source_buffer_create(bytes, length, 0, &error);
    if (!source) return fail_zip(name, &error);
    zip_t *zip = zip_library.open_from_source(source, ZIP_RDONLY, &error);
    if (!zip) {
        zip_library.source_free(source);
        return fail_zip(name, &error);
    }
    Archive archive = {.zip = zip, .name = name, .length = length, .out = out};
    Status status = read_members(&archive);
    if (status == STATUS_OK) status = take_texts(out);
    zip_library.discard(zip);
    zip_library.error_fini(&error);
    if (status != STATUS_OK) named_tensors_free(out);
    return status;
}

Status npz_open(Reader *reader, FileMap *map) {
    NamedTensors tensors;
    TRY(npz_parse(file_map_bytes(map), file_map_length(map), file_map_path(map), &tensors));
    for (size_t i = 0; i < tensors.count; i++)
        reader_add_tensor(reader, tensors.items[i].name, tensors.items[i].tensor);
    reader_add_texts(reader, &tensors.texts);
    named_tensors_free(&tensors);
    return STATUS_OK;
}

// --- writing

// One array on its way into an archive. Its numbers are in memory only while libzip reads them.
typedef struct MemberWriter {
    Tensor *tensor;
    Text header;
    uint8_t *numbers;
    size_t bytes, at; // of the numbers; how much of header and numbers was read
    Status *status;   // of the whole archive
} MemberWriter;

static zip_int64_t member_open(MemberWriter *member) {
    void *numbers;
    Status status = stored_download(member->tensor, &numbers, &member->bytes);
    if (status != STATUS_OK) {
        *member->status = status;
        return -1;
    }
    member->numbers = numbers;
    member->at = 0;
    return 0;
}

static zip_int64_t member_close(MemberWriter *member) {
    free(member->numbers);
    member->numbers = NULL;
    return 0;
}

static size_t copy_part(MemberWriter *member, char *out, size_t length) {
    size_t before = member->header.length, left;
    ASSERT(member->at <= before + member->bytes);
    const char *from;
    if (member->at < before) {
        from = text_get(&member->header) + member->at;
        left = before - member->at;
    } else {
        from = (const char *)member->numbers + (member->at - before);
        left = before + member->bytes - member->at;
    }
    size_t count = left < length ? left : length;
    memcpy(out, from, count);
    member->at += count;
    return count;
}

static zip_int64_t member_read(MemberWriter *member, char *out, size_t length) {
    size_t count = copy_part(member, out, length);
    if (count < length) count += copy_part(member, out + count, length - count);
    return (zip_int64_t)count;
}

static zip_int64_t member_describe(const MemberWriter *member, zip_stat_t *out) {
    zip_library.stat_init(out);
    out->valid = ZIP_STAT_SIZE;
    out->size = member->header.length + (zip_uint64_t)tensor_count(member->tensor) *
                                            dtype_size(tensor_dtype(member->tensor));
    return sizeof *out;
}

static zip_int64_t member_error(int *out) {
    out[0] = ZIP_ER_READ;
    out[1] = 0;
    return 2 * sizeof *out;
}

#define COMMAND(name) ZIP_SOURCE_MAKE_COMMAND_BITMASK(ZIP_SOURCE_##name)

static zip_int64_t member_command(void *state, void *data, zip_uint64_t length,
                                  zip_source_cmd_t command) {
    MemberWriter *member = state;
    switch (command) {
    case ZIP_SOURCE_OPEN: return member_open(member);
    case ZIP_SOURCE_READ: return member_read(member, data, length);
    case ZIP_SOURCE_STAT: return member_describe(member, data);
    case ZIP_SOURCE_ERROR: return member_error(data);
    case ZIP_SOURCE_SUPPORTS:
        return COMMAND(OPEN) | COMMAND(READ) | COMMAND(CLOSE) | COMMAND(STAT) | COMMAND(ERROR) |
               COMMAND(FREE);
    case ZIP_SOURCE_FREE: text_free(&member->header); return member_close(member);
    default: return member_close(member);
    }
}

typedef struct Writing {
    const char *path;
    const NamedTensors *tensors;
    MemberWriter *members; // one per tensor
} Writing;

// 1980-01-01, where the times of zip archives begin.
enum { DOS_TIME = 0, DOS_DATE = 1 << 5 | 1 };

static Status add_member(zip_t *zip, const NamedTensor *named, MemberWriter *member) {
    ASSERT(member->numbers == NULL);
    member->tensor = named->tensor;
    Status status = npy_header(named->tensor, named->name, &member->header);
    if (status != STATUS_OK) {
        text_free(&member->header);
        return status;
    }
    zip_source_t *source = zip_library.source_function(zip, member_command, member);
    SCOPED_TEXT(name);
    text_format(&name, "%s%s", named->name, ending);
    zip_int64_t index =
        source ? zip_library.file_add(zip, text_get(&name), source, ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0) {
        if (source) zip_library.source_free(source);
        return fail(STATUS_VALUE, "`%.80s` is not a name for a tensor in a .npz file: %s",
                    named->name, zip_library.error_strerror(zip_library.get_error(zip)));
    }
    (void)zip_library.set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0);
    (void)zip_library.file_set_dostime(zip, (zip_uint64_t)index, DOS_TIME, DOS_DATE, 0);
    return STATUS_OK;
}

// libzip writes no archive without members.
static Status write_empty(FILE *stream, void *context) {
    (void)context;
    return stream_write(stream, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
}

static Status fail_write(const Writing *writing, zip_error_t *error) {
    return fail(STATUS_IO, "cannot write %s: %s", writing->path, zip_library.error_strerror(error));
}

static Status write_archive(const char *part, void *context) {
    Writing *writing = context;
    int code;
    Status status = STATUS_OK;
    zip_t *zip = zip_library.open(part, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (!zip) {
        zip_error_t error;
        zip_library.error_init_with_code(&error, code);
        status = fail_write(writing, &error);
        zip_library.error_fini(&error);
        return status;
    }
    for (size_t i = 0; i < writing->tensors->count && status == STATUS_OK; i++) {
        writing->members[i].status = &status;
        status = add_member(zip, &writing->tensors->items[i], &writing->members[i]);
    }
    if (status == STATUS_OK && zip_library.close(zip) == 0) return STATUS_OK;
    if (status == STATUS_OK) status = fail_write(writing, zip_library.get_error(zip));
    zip_library.discard(zip);
    return status;
}

static Status texts_tensor(const NamedTensors *tensors, Tensor **out) {
    json_t *object = named_texts_pack(tensors);
    SCOPED_MEMORY char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    Shape shape = {.rank = 1, .dims = {(int64_t)strlen(text)}};
    SCOPED_MEMORY int64_t *bytes = memory_allocate((strlen(text) + 1) * sizeof *bytes);
    for (size_t i = 0; text[i]; i++) bytes[i] = (uint8_t)text[i];
    return tensor_from_integers(bytes, &shape, DTYPE_UINT8, out);
}

static Status write_with_texts(const char *path, const NamedTensors *tensors) {
    NamedTensors all = {0};
    Tensor *texts;
    TRY(texts_tensor(tensors, &texts));
    for (size_t i = 0; i < tensors->count; i++)
        named_tensors_add(&all, tensors->items[i].name, tensor_retain(tensors->items[i].tensor));
    named_tensors_add(&all, texts_name, texts);
    Status status = npz_write(path, &all);
    named_tensors_free(&all);
    return status;
}

Status npz_write(const char *path, const NamedTensors *tensors) {
    if (tensors->texts.count > 0) return write_with_texts(path, tensors);
    if (tensors->count == 0) return file_keep_stream(path, write_empty, NULL);
    TRY(library_load(&library));
    Writing writing = {.path = path, .tensors = tensors};
    writing.members = memory_allocate_zeroed(tensors->count, sizeof *writing.members);
    Status status = file_keep(path, write_archive, &writing);
    free(writing.members);
    return status;
}
