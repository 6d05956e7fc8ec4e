// Embeddings: a row of numbers for each name, of an entity type, of given names, or of whatever is
// asked for. The table is made when it is first read and grows with its names.
#include <math.h>
#include <stdlib.h>

#include "reason/embedding.h"
#include "tensor/compose.h"
#include "tensor/gradient/tape.h"
#include "tensor/index.h"
#include "tensor/parameter.h"
#include "value/convert.h"

typedef enum Init { INIT_XAVIER, INIT_RANDOM, INIT_HE, INIT_ZEROS, INIT_ONES } Init;
static const char *const init_words[] = {"xavier", "random", "he", "zeros", "ones"};

typedef struct Embedding {
    Reasoner *reasoner;
    Relation *type;           // NULL: names of its own
    const Relation *relation; // whose queries alone it is for; NULL: all
    Table *names;             // these, one column
    bool grows;               // with every name that is asked for
    Init init;
    int64_t dimension;
    bool learnable;
    Tensor *table; // NULL: not made yet
} Embedding;

static void embedding_release(void *payload) {
    Embedding *embedding = payload;
    size_t kept = 0;
    for (size_t i = 0; i < embedding->reasoner->embeddings.count; i++)
        if (embedding->reasoner->embeddings.items[i]->payload != payload)
            embedding->reasoner->embeddings.items[kept++] =
                embedding->reasoner->embeddings.items[i];
    embedding->reasoner->embeddings.count = kept;
    tensor_release(embedding->table);
    table_free(embedding->names);
    free(embedding);
}

// --- rows

static Status embedding_names(const Embedding *embedding, Table **out) {
    if (embedding->names) {
        *out = embedding->names;
        return STATUS_OK;
    }
    TRY(reasoner_enter(embedding->reasoner));
    Status status = type_members(embedding->reasoner->store, embedding->type, out);
    reasoner_leave(embedding->reasoner);
    return status;
}

// Rows of length 1, as readings of what is superposed want them (soft.c).
static Status unit_rows(Tensor *drawn, Tensor **out) {
    OpAttributes rows = {
        .given = ATTRIBUTE_BIT(dim) | ATTRIBUTE_BIT(keepdim), .dim = 1, .keepdim = true};
    SCOPED_TENSOR(lengths);
    TRY(op_with(OP_norm, &drawn, 1, &rows, &lengths));
    return op_with(OP_div, (Tensor *const[]){drawn, lengths}, 2, NULL, out);
}

// Uniform in -bound..bound, normal, or in all directions alike.
static Status random_rows(const Embedding *embedding, const Shape *shape, Tensor **out) {
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape), .shape = *shape};
    double dimension = (double)embedding->dimension, rows = (double)shape->dims[0];
    SCOPED_TENSOR(drawn);
    SCOPED_TENSOR(centred);
    if (embedding->init == INIT_XAVIER) {
        TRY(op_with(OP_rand, NULL, 0, &attributes, &drawn));
        TRY(compose_with_number(OP_sub, drawn, 0.5, &centred));
        return compose_with_number(OP_mul, centred, 2 * sqrt(6 / (rows + dimension)), out);
    }
    TRY(op_with(OP_randn, NULL, 0, &attributes, &drawn));
    if (embedding->init == INIT_RANDOM) return unit_rows(drawn, out);
    return compose_with_number(OP_mul, drawn, sqrt(2 / dimension), out);
}

static Status new_rows(const Embedding *embedding, int64_t count, Tensor **out) {
    Shape shape = {.rank = 2, .dims = {count, embedding->dimension}};
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape), .shape = shape};
    if (embedding->init == INIT_ZEROS) return op_with(OP_zeros, NULL, 0, &attributes, out);
    if (embedding->init == INIT_ONES) return op_with(OP_ones, NULL, 0, &attributes, out);
    return random_rows(embedding, &shape, out);
}

// The rows that are missing come behind those that are there, which keep their numbers.
static Status grow(Embedding *embedding, int64_t count) {
    int64_t before = embedding->table ? embedding->table->view.dims[0] : 0;
    SCOPED_TENSOR(rows);
    SCOPED_TENSOR(all);
    TRY(new_rows(embedding, count - before, &rows));
    if (embedding->table) {
        OpInput parts[] = {op_tensor(embedding->table), op_tensor(rows)};
        OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = 0};
        OpCall call = {
            .op = &op_rows[OP_concat], .attributes = &attributes, .many = parts, .n_many = 2};
        TRY(op_apply(&call, &all));
    } else {
        all = tensor_retain(rows);
    }
    Tensor *table = NULL;
    if (embedding->learnable)
        TRY(tape_parameter_new(all, &table));
    else
        table = tensor_retain(all);
    tensor_release(embedding->table);
    embedding->table = table;
    return STATUS_OK;
}

static Status ensure_rows(Embedding *embedding) {
    Table *names;
    TRY(embedding_names(embedding, &names));
    int64_t count = table_live(names);
    if (embedding->table && embedding->table->view.dims[0] >= count) return STATUS_OK;
    bool recording = tape_set_enabled(false);
    Status status = grow(embedding, count);
    tape_set_enabled(recording);
    return status;
}

// --- as a tensor

static int embedding_rank(const Handle *handle) {
    (void)handle;
    return 2;
}

// What of the table is meant, as items of an index.
static int read_items(const int64_t *at, IndexItem *items) {
    for (int i = 0; i < 2; i++)
        items[i] = at[i] == PLACE_ALL ? (IndexItem){.kind = INDEX_SLICE}
                                      : (IndexItem){.kind = INDEX_INTEGER, .integer = at[i]};
    return 2;
}

static Status embedding_read(Handle *handle, const int64_t *at, Tensor **out) {
    Embedding *embedding = handle->payload;
    IndexItem items[2];
    TRY(ensure_rows(embedding));
    if (at[0] == PLACE_ALL && at[1] == PLACE_ALL) {
        *out = tensor_retain(embedding->table);
        return STATUS_OK;
    }
    return index_get(embedding->table, items, read_items(at, items), out);
}

static Status embedding_write(Handle *handle, const int64_t *at, Tensor *value) {
    Embedding *embedding = handle->payload;
    IndexItem items[2];
    int count = read_items(at, items);
    TRY(ensure_rows(embedding));
    if (embedding->learnable)
        return index_set_parameter(embedding->table, items, count, op_tensor(value));
    return index_set(&embedding->table, items, count, op_tensor(value),
                     embedding->table->counted.refs == 1);
}

static Status embedding_place(Handle *handle, int dim, const String *name, int64_t *out) {
    Embedding *embedding = handle->payload;
    Store *store = embedding->reasoner->store;
    Table *names;
    if (dim != 0)
        return fail(STATUS_NAME, "`%.*s` cannot be a place of dimension 1 of an embedding",
                    (int)name->length, name->bytes);
    TRY(embedding_names(embedding, &names));
    Datum value = constant_text(&store->constants, name->bytes, name->length);
    uint32_t row = table_find(names, &value);
    if (row == ROW_NONE && embedding->grows) row = table_append(names, &value);
    *out = row;
    if (row != ROW_NONE) return STATUS_OK;
    if (embedding->type)
        return fail(STATUS_NAME, "`%.*s` is not %s %s", (int)name->length, name->bytes,
                    text_article(embedding->type->name), embedding->type->name);
    return fail(STATUS_NAME, "the embedding has no row for `%.*s`", (int)name->length, name->bytes);
}

static const HandleTensor embedding_tensor = {.rank = embedding_rank,
                                              .read = embedding_read,
                                              .write = embedding_write,
                                              .place = embedding_place};

static void embedding_print(Handle *handle, Text *out) {
    const Embedding *embedding = handle->payload;
    text_format(out, "<embedding of %s, %lld numbers each>",
                embedding->type ? embedding->type->name : "names", (long long)embedding->dimension);
}

static const HandleType handle_embedding = {.name = "embedding",
                                            .release = embedding_release,
                                            .print = embedding_print,
                                            .tensor = &embedding_tensor};

// --- making

static Status read_init(const String *word, Init *out) {
    size_t count = sizeof init_words / sizeof *init_words;
    for (size_t i = 0; i < count; i++) {
        if (strlen(init_words[i]) != word->length ||
            memcmp(init_words[i], word->bytes, word->length) != 0)
            continue;
        *out = (Init)i;
        return STATUS_OK;
    }
    fail(STATUS_VALUE, "an embedding cannot begin as \"%.*s\"", (int)word->length, word->bytes);
    return fail_help("there are xavier, random, he, zeros and ones");
}

static void add_name(Embedding *embedding, const char *text, size_t length) {
    Datum name = constant_text(&embedding->reasoner->store->constants, text, length);
    if (!table_has(embedding->names, &name)) table_append(embedding->names, &name);
}

static void add_relations(Embedding *embedding) {
    const RelationList *relations = &embedding->reasoner->store->relations;
    for (size_t i = 0; i < relations->count; i++) {
        const Relation *relation = relations->items[i];
        if (!relation->entities) add_name(embedding, relation->name, strlen(relation->name));
    }
}

// An entity type, a list of names, "auto" (every name that is asked for), "entity" (what columns of
// any entity hold) or "all" (relations).
static Status read_entities(Embedding *embedding, Value entities) {
    if (value_is_text(entities, "entity")) {
        embedding->type = store_open_type(embedding->reasoner->store);
        return STATUS_OK;
    }
    bool type = entities.kind == VALUE_HANDLE && entities.as.handle->type == &handle_relation &&
                ((Relation *)entities.as.handle->payload)->entities;
    if (type) {
        embedding->type = entities.as.handle->payload;
        return STATUS_OK;
    }
    embedding->names = table_new(1, columns_all(1));
    embedding->grows = value_is_text(entities, "auto");
    if (value_is_text(entities, "all")) add_relations(embedding);
    if (embedding->grows || value_is_text(entities, "all")) return STATUS_OK;
    bool names = entities.kind == VALUE_LIST && entities.as.list->count > 0;
    for (size_t i = 0; names && i < entities.as.list->count; i++) {
        Value name = entities.as.list->items[i];
        names = name.kind == VALUE_STRING;
        if (names) add_name(embedding, name.as.string->bytes, name.as.string->length);
    }
    if (names) return STATUS_OK;
    return fail_kind("what an embedding is of", "an entity type, names, auto or all", entities);
}

Value embedding_new(Reasoner *reasoner, const EmbeddingOptions *options) {
    Embedding *embedding = memory_allocate_zeroed(1, sizeof *embedding);
    embedding->reasoner = reasoner;
    embedding->dimension = options->dimension;
    embedding->learnable = options->learnable;
    Status status = read_init(options->init, &embedding->init);
    if (status == STATUS_OK && options->dimension < 1)
        status = fail(STATUS_VALUE, "an embedding has at least 1 dimension, not %lld",
                      (long long)options->dimension);
    if (status == STATUS_OK) status = read_entities(embedding, options->entities);
    if (status != STATUS_OK) {
        embedding_release(embedding);
        return value_fail();
    }
    Value value = value_handle(&handle_embedding, embedding);
    if (embedding->type) VECTOR_PUSH(&reasoner->embeddings, value.as.handle);
    return value;
}

static Handle *find_embedding(const Reasoner *reasoner, const Relation *relation,
                              const Relation *type) {
    for (size_t i = reasoner->embeddings.count; i-- > 0;) {
        const Embedding *embedding = reasoner->embeddings.items[i]->payload;
        if (embedding->type == type && embedding->relation == relation)
            return reasoner->embeddings.items[i];
    }
    return NULL;
}

void relation_embed(Reasoner *reasoner, Relation *relation, int64_t dimension, bool learnable) {
    for (uint32_t i = 0; i < relation->arity; i++) {
        Relation *type = relation->columns[i].type;
        if (find_embedding(reasoner, relation, type)) continue;
        Embedding *embedding = memory_allocate_zeroed(1, sizeof *embedding);
        *embedding = (Embedding){.reasoner = reasoner,
                                 .type = type,
                                 .relation = relation,
                                 .dimension = dimension,
                                 .learnable = learnable};
        Value value = value_handle(&handle_embedding, embedding);
        VECTOR_PUSH(&reasoner->embeddings, value.as.handle);
        list_push(reasoner->interp->store->roots->as.list, value);
    }
}

Status embedding_of_type(Reasoner *reasoner, const Relation *relation, const Relation *type,
                         Tensor **out) {
    Handle *handle = find_embedding(reasoner, relation, type);
    if (!handle) handle = find_embedding(reasoner, NULL, type);
    if (handle) return embedding_read(handle, (const int64_t[]){PLACE_ALL, PLACE_ALL}, out);
    fail(STATUS_VALUE, "%s has no embedding", type->name);
    return fail_help("as in embedding E { entities: %s  dimension: 64 }", type->name);
}
