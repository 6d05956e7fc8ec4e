#include "generate/embedding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/model.h"
#include "tensor/compose.h"

// --- pooling

static const char *const words[] = {
    [POOLING_MEAN] = "mean", [POOLING_CLS] = "cls", [POOLING_LAST] = "last"};

// GGUF's numbers of the ways.
enum { FILE_NONE, FILE_MEAN, FILE_CLS, FILE_LAST };

static Status pooling_of_file(const Network *network, Pooling *out) {
    const Model *model = network_model(network).as.handle->payload;
    const Metadata *metadata = &model_reader(model)->metadata;
    const MetaValue *name = metadata_find(metadata, "general.architecture");
    SCOPED_TEXT(key);
    text_append(&key, name->as.string.bytes, name->as.string.length);
    text_append_string(&key, ".pooling_type");
    const MetaValue *value = metadata_find(metadata, text_get(&key));
    int64_t number = meta_is_integer(value) ? value->as.integer : FILE_NONE;
    *out = number == FILE_CLS ? POOLING_CLS : number == FILE_LAST ? POOLING_LAST : POOLING_MEAN;
    if (number >= FILE_NONE && number <= FILE_LAST) return STATUS_OK;
    (void)fail(STATUS_VALUE, "%s pools by the way %lld, which is not supported", model_path(model),
               (long long)number);
    return fail_help("pooling: \"mean\", \"cls\" or \"last\" says another");
}

Status pooling_read(const Network *network, const char *word, Pooling *out) {
    if (!word) return pooling_of_file(network, out);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *out = (Pooling)i;
            return STATUS_OK;
        }
    return fail(STATUS_VALUE, "pooling is \"mean\", \"cls\" or \"last\", not \"%s\"", word);
}

static void pool(const double *rows, int64_t count, int64_t width, Pooling pooling, double *out) {
    int64_t first = pooling == POOLING_LAST ? count - 1 : 0;
    int64_t end = pooling == POOLING_CLS ? 1 : count;
    ASSERT(count > 0);
    for (int64_t i = 0; i < width; i++) {
        out[i] = 0;
        for (int64_t row = first; row < end; row++) out[i] += rows[row * width + i];
        out[i] /= (double)(end - first);
    }
}

// --- vectors

static Status check_length(const Network *network, size_t count) {
    if (count == 0) return fail(STATUS_VALUE, "a text without tokens has no embedding");
    if (network->context == 0 || (int64_t)count <= network->context) return STATUS_OK;
    return fail(STATUS_VALUE, "a text of %zu tokens does not fit the model's context of %lld",
                count, (long long)network->context);
}

// What the page makes of a pooled row, where it makes something of it.
static Status finish(const Network *network, double **row, int64_t *width) {
    if (!network->pools) return STATUS_OK;
    SCOPED_TENSOR(before);
    SCOPED_TENSOR(after);
    Shape shape = {.rank = 2, .dims = {1, *width}};
    TRY(tensor_from_floats(*row, &shape, DTYPE_FLOAT32, &before));
    TRY(network_pooled(network, before, &after));
    *width = tensor_count(after);
    *row = memory_resize(*row, (size_t)(*width + 1) * sizeof **row);
    return tensor_read_floats(after, *row);
}

static Status append(Vectors *vectors, const double *row, int64_t width) {
    if (vectors->count > 0 && vectors->width != width)
        return fail(STATUS_SHAPE, "the page gives a vector of %lld numbers after one of %lld",
                    (long long)width, (long long)vectors->width);
    vectors->width = width;
    vectors->numbers = memory_resize(vectors->numbers, (size_t)((vectors->count + 1) * width + 1) *
                                                           sizeof *vectors->numbers);
    double *out = vectors->numbers + vectors->count++ * width;
    double square = 0;
    for (int64_t i = 0; i < width; i++) square += row[i] * row[i];
    for (int64_t i = 0; i < width; i++) out[i] = (float)(square > 0 ? row[i] / sqrt(square) : 0);
    return STATUS_OK;
}

static Status add_pooled(Vectors *vectors, Tensor *hidden) {
    int64_t count = hidden->view.dims[0], width = hidden->view.dims[1];
    double *rows = memory_allocate((size_t)(count * width + 1) * sizeof *rows);
    SCOPED_MEMORY double *row = memory_allocate((size_t)(width + 1) * sizeof *row);
    Status status = tensor_read_floats(hidden, rows);
    if (status == STATUS_OK) pool(rows, count, width, vectors->pooling, row);
    free(rows);
    if (status == STATUS_OK) status = finish(vectors->network, &row, &width);
    if (status == STATUS_OK) status = append(vectors, row, width);
    return status;
}

Status vectors_add(Vectors *vectors, const TokenIds *ids) {
    Sequence *sequence;
    SCOPED_TENSOR(hidden);
    TRY(check_length(vectors->network, ids->count));
    TRY(network_check_ids(vectors->network, ids->ids, ids->count));
    TRY(sequence_new(vectors->network, &sequence));
    Status status = sequences_hidden(&(Step){sequence, ids->ids, ids->count, 1, false}, 1, &hidden);
    sequence_free(sequence);
    TRY(status);
    bool rows = hidden->view.rank == 2 && hidden->view.dims[0] == (int64_t)ids->count;
    if (!rows)
        return fail(STATUS_SHAPE, "the page's forward gives %s for %zu ids",
                    tensor_type_name(hidden).text, ids->count);
    return add_pooled(vectors, hidden);
}
