// The file: "TLFACTS" and a version, the length of what follows and its checksum (8 bytes each);
// then constants, each a kind and its value, tuples naming earlier constants; then relations: name,
// columns, rows, and the rows' constants; then, where facts have weights, how many and for each the
// numbers of its relation and row in the file, the weight and its group. All numbers are
// little-endian.
#include "logic/archive.h"

#include <stdlib.h>

#include "base/file_map.h"
#include "base/file_replace.h"
#include "base/utf8.h"

static const char magic[8] = "TLFACTS\1";
enum { HEADER = 24 };

// FNV-1a
static uint64_t checksum(const uint8_t *bytes, size_t length) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

// --- writing

typedef struct Archiving {
    const Store *store;
    const FactWeigher *weigher;         // or NULL
    Text constants, relations, weights; // their bytes
    Table *numbers;                     // constant, number + 1 in the file
    uint32_t constant_count, relation_count, weight_count;
} Archiving;

static void put(Text *out, uint64_t number, int bytes) {
    for (int i = 0; i < bytes; i++) text_append_char(out, (char)(number >> 8 * i & 0xff));
}

static void put_text(Text *out, const char *text, size_t length) {
    put(out, length, 4);
    text_append(out, text, length);
}

static void put_bits(Text *out, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put(out, bits, 8);
}

static void put_value(Archiving *archive, Datum constant, const uint32_t *items) {
    const ConstantTable *constants = &archive->store->constants;
    ConstantKind kind = constant_kind(constants, constant);
    Text *out = &archive->constants;
    put(out, kind, 1);
    if (kind == CONSTANT_INT) {
        put(out, (uint64_t)constant_integer(constants, constant), 8);
        return;
    }
    const ConstantEntry *entry = constant_entry(constants, constant);
    switch (kind) {
    case CONSTANT_FLOAT: put_bits(out, entry->as.number); break;
    case CONSTANT_BOOL: put(out, entry->as.integer != 0, 1); break;
    case CONSTANT_TEXT: put_text(out, entry->as.text, entry->length); break;
    default:
        put(out, entry->length, 4);
        for (uint32_t i = 0; i < entry->length; i++) put(out, items[i], 4);
    }
}

// The constant's number in the file; it is written when it is new, a tuple behind its items.
static uint32_t number_of(Archiving *archive, Datum constant) {
    const ConstantTable *constants = &archive->store->constants;
    uint32_t row = table_find(archive->numbers, &constant);
    if (row != ROW_NONE) return table_at(archive->numbers, row, 1);
    bool tuple = constant_kind(constants, constant) >= CONSTANT_TUPLE;
    uint32_t length = tuple ? constant_entry(constants, constant)->length : 0;
    uint32_t *items = memory_allocate((length + 1) * sizeof *items);
    for (uint32_t i = 0; i < length; i++)
        items[i] = number_of(archive, constant_entry(constants, constant)->as.items[i]);
    put_value(archive, constant, items);
    free(items);
    Datum known[] = {constant, archive->constant_count};
    table_append(archive->numbers, known);
    return archive->constant_count++;
}

static Status put_weights(Archiving *archive, const Relation *relation) {
    const Table *facts = relation->facts;
    const FactWeigher *weigher = archive->weigher;
    if (!weigher || !weigher->any(weigher->context, relation)) return STATUS_OK;
    for (uint32_t row = 0, live = 0; row < facts->count; row++) {
        Datum values[ARITY_MAX];
        FactWeight weight;
        bool found;
        if (table_is_dead(facts, row)) continue;
        table_read(facts, row, values);
        TRY(weigher->find(weigher->context, relation, values, &weight, &found));
        if (found) {
            put(&archive->weights, archive->relation_count, 4);
            put(&archive->weights, live, 4);
            put_bits(&archive->weights, weight.number);
            put(&archive->weights, weight.group, 4);
            archive->weight_count++;
        }
        live++;
    }
    return STATUS_OK;
}

static Status put_relation(Archiving *archive, const Relation *relation) {
    const Table *facts = relation->facts;
    Text *out = &archive->relations;
    put_text(out, relation->name, strlen(relation->name));
    put(out, relation->arity, 4);
    put(out, table_live(facts), 4);
    for (uint32_t column = 0; column < relation->arity; column++)
        for (uint32_t row = 0; row < facts->count; row++)
            if (!table_is_dead(facts, row))
                put(out, number_of(archive, table_at(facts, row, column)), 4);
    TRY(put_weights(archive, relation));
    archive->relation_count++;
    return STATUS_OK;
}

static Status archive_write(FILE *stream, void *context) {
    const Text *body = context;
    SCOPED_TEXT(header);
    text_append(&header, magic, sizeof magic);
    put(&header, body->length, 8);
    put(&header, checksum((const uint8_t *)body->bytes, body->length), 8);
    TRY(stream_write(stream, header.bytes, header.length));
    return stream_write(stream, body->bytes, body->length);
}

static Status put_relations(Archiving *archive, const Relation *only) {
    const RelationList *list = &archive->store->relations;
    for (size_t i = 0; i < list->count; i++)
        if (only ? only == list->items[i] : !list->items[i]->inner)
            TRY(put_relation(archive, list->items[i]));
    return STATUS_OK;
}

static void put_body(const Archiving *archive, Text *out) {
    put(out, archive->constant_count, 4);
    text_append(out, text_get(&archive->constants), archive->constants.length);
    put(out, archive->relation_count, 4);
    text_append(out, text_get(&archive->relations), archive->relations.length);
    if (archive->weight_count == 0) return;
    put(out, archive->weight_count, 4);
    text_append(out, text_get(&archive->weights), archive->weights.length);
}

Status store_save(const Archive *what, const char *path) {
    Archiving archive = {
        .store = what->store, .weigher = what->weigher, .numbers = table_new(2, 1)};
    SCOPED_TEXT(body);
    Status status = put_relations(&archive, what->only);
    if (status == STATUS_OK) {
        put_body(&archive, &body);
        status = file_keep_stream(path, archive_write, &body);
    }
    text_free(&archive.constants);
    text_free(&archive.relations);
    text_free(&archive.weights);
    table_free(archive.numbers);
    return status;
}

// --- reading

typedef struct Block {  // facts that fit
    Relation *relation; // NULL: those of the file are not wanted
    Datum *values;      // row by row
    uint32_t rows;
} Block;

typedef struct WeightRecord {
    const Block *block;
    uint32_t row;
    FactWeight weight;
} WeightRecord;

typedef struct Reading {
    Store *store;
    Relation *only;
    const FactWeigher *weigher; // or NULL
    const char *path;
    const uint8_t *at, *end;
    DatumList constants;
    VECTOR(Block) blocks; // of each relation
    VECTOR(WeightRecord) weights;
} Reading;

static Status fail_damaged(const Reading *reading) {
    return fail(STATUS_FORMAT, "%s: the facts are damaged", reading->path);
}

static Status take(Reading *reading, int bytes, uint64_t *out) {
    ASSERT(bytes > 0 && bytes <= 8 && reading->at <= reading->end);
    *out = 0;
    if (reading->end - reading->at < bytes) return fail_damaged(reading);
    for (int i = 0; i < bytes; i++) *out |= (uint64_t)*reading->at++ << 8 * i;
    return STATUS_OK;
}

static Status take_text(Reading *reading, const char **text, size_t *length) {
    uint64_t count;
    *text = "";
    *length = 0;
    TRY(take(reading, 4, &count));
    if ((uint64_t)(reading->end - reading->at) < count) return fail_damaged(reading);
    *text = (const char *)reading->at;
    *length = count;
    reading->at += count;
    return utf8_valid(*text, *length, NULL) ? STATUS_OK : fail_damaged(reading);
}

static Status take_constant(Reading *reading, Datum *out) {
    uint64_t number;
    *out = CONSTANT_NONE;
    TRY(take(reading, 4, &number));
    if (number >= reading->constants.count) return fail_damaged(reading);
    *out = reading->constants.items[number];
    return STATUS_OK;
}

static Status take_tuple(Reading *reading, Datum *out) {
    uint64_t count;
    TRY(take(reading, 4, &count));
    if ((uint64_t)(reading->end - reading->at) / 4 < count) return fail_damaged(reading);
    SCOPED_MEMORY Datum *items = memory_allocate((count + 1) * sizeof *items);
    Status status = STATUS_OK;
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++)
        status = take_constant(reading, &items[i]);
    if (status == STATUS_OK) *out = constant_tuple(&reading->store->constants, items, count);
    return status;
}

static Status take_value(Reading *reading, Datum *out) {
    ConstantTable *constants = &reading->store->constants;
    uint64_t kind, bits;
    const char *text;
    size_t length;
    double number;
    *out = CONSTANT_NONE;
    TRY(take(reading, 1, &kind));
    switch (kind) {
    case CONSTANT_INT:
        TRY(take(reading, 8, &bits));
        *out = constant_int(constants, (int64_t)bits);
        return STATUS_OK;
    case CONSTANT_FLOAT:
        TRY(take(reading, 8, &bits));
        memcpy(&number, &bits, sizeof number);
        *out = constant_float(constants, number);
        return STATUS_OK;
    case CONSTANT_BOOL:
        TRY(take(reading, 1, &bits));
        *out = constant_bool(constants, bits != 0);
        return STATUS_OK;
    case CONSTANT_TEXT:
        TRY(take_text(reading, &text, &length));
        *out = constant_text(constants, text, length);
        return STATUS_OK;
    case CONSTANT_TUPLE: return take_tuple(reading, out);
    default: return fail_damaged(reading);
    }
}

static Status take_constants(Reading *reading) {
    uint64_t count;
    TRY(take(reading, 4, &count));
    for (uint64_t i = 0; i < count; i++) {
        Datum constant;
        TRY(take_value(reading, &constant));
        VECTOR_PUSH(&reading->constants, constant);
    }
    return STATUS_OK;
}

static bool has_name(const Relation *relation, const char *name, size_t length) {
    return strlen(relation->name) == length && memcmp(relation->name, name, length) == 0;
}

static bool is_wanted(const Reading *reading, const char *name, size_t length) {
    return !reading->only || has_name(reading->only, name, length);
}

static Status find_relation(const Reading *reading, const char *name, size_t length, uint64_t arity,
                            Relation **out) {
    const RelationList *list = &reading->store->relations;
    *out = reading->only;
    for (size_t i = 0; i < list->count && !*out; i++)
        if (has_name(list->items[i], name, length)) *out = list->items[i];
    if (*out && (*out)->arity == arity) return STATUS_OK;
    if (*out)
        return fail(STATUS_ARITY, "%s: %s has %llu columns in the file and %u here", reading->path,
                    (*out)->name, (unsigned long long)arity, (*out)->arity);
    fail(STATUS_NAME, "%s holds facts of %.*s, which is not declared", reading->path, (int)length,
         name);
    return fail_help("declare it, or name the relation to load: load_facts(path, R)");
}

static Status fit_value(const Reading *reading, Relation *relation, uint32_t column, Datum *value) {
    TRY(column_fit(reading->store, relation, column, value));
    if (!relation->closed || table_has(relation->facts, value)) return STATUS_OK;
    SCOPED_TEXT(text);
    constant_print(&reading->store->constants, *value, &text);
    fail(STATUS_TYPE, "%s: %s is a closed type, and `%s` is not in it", reading->path,
         relation->name, text_get(&text));
    return STATUS_TYPE;
}

// `relation` NULL: they are passed over.
static Status take_rows(Reading *reading, Relation *relation, uint64_t arity, uint64_t rows) {
    bool fits = (uint64_t)(reading->end - reading->at) / 4 >= arity * rows;
    if (arity > ARITY_MAX || !fits || (arity == 0 && rows > 1)) return fail_damaged(reading);
    Block block = {relation, NULL, (uint32_t)rows};
    if (relation) block.values = memory_allocate((arity * rows + 1) * sizeof(Datum));
    VECTOR_PUSH(&reading->blocks, block);
    if (!relation) {
        reading->at += arity * rows * 4;
        return STATUS_OK;
    }
    for (uint32_t column = 0; column < arity; column++)
        for (uint64_t row = 0; row < rows; row++) {
            Datum *value = &block.values[row * arity + column];
            TRY(take_constant(reading, value));
            TRY(fit_value(reading, relation, column, value));
        }
    return STATUS_OK;
}

static Status take_relations(Reading *reading) {
    uint64_t count, arity, rows;
    const char *name;
    size_t length;
    TRY(take(reading, 4, &count));
    for (uint64_t i = 0; i < count; i++) {
        TRY(take_text(reading, &name, &length));
        TRY(take(reading, 4, &arity));
        TRY(take(reading, 4, &rows));
        Relation *relation = NULL;
        if (rows > 0 && is_wanted(reading, name, length))
            TRY(find_relation(reading, name, length, arity, &relation));
        TRY(take_rows(reading, relation, arity, rows));
    }
    return STATUS_OK;
}

static Status take_weight(Reading *reading) {
    uint64_t relation, row, bits, group;
    TRY(take(reading, 4, &relation));
    TRY(take(reading, 4, &row));
    TRY(take(reading, 8, &bits));
    TRY(take(reading, 4, &group));
    if (relation >= reading->blocks.count) return fail_damaged(reading);
    const Block *block = &reading->blocks.items[relation];
    if (row >= block->rows) return fail_damaged(reading);
    WeightRecord record = {block, (uint32_t)row, {.group = group}};
    memcpy(&record.weight.number, &bits, sizeof bits);
    if (block->relation) VECTOR_PUSH(&reading->weights, record);
    return STATUS_OK;
}

static Status take_weights(Reading *reading) {
    uint64_t count = 0;
    if (reading->at < reading->end) TRY(take(reading, 4, &count));
    for (uint64_t i = 0; i < count; i++) TRY(take_weight(reading));
    return reading->at == reading->end ? STATUS_OK : fail_damaged(reading);
}

static Status take_all(Reading *reading) {
    TRY(take_constants(reading));
    TRY(take_relations(reading));
    return take_weights(reading);
}

static const Datum *block_row(const Block *block, uint32_t row) {
    ASSERT(block->relation && row < block->rows);
    return block->values + (size_t)row * block->relation->arity;
}

static uint64_t add_facts(const Reading *reading) {
    const FactWeigher *weigher = reading->weigher;
    uint64_t added = 0;
    for (size_t i = 0; i < reading->blocks.count; i++) {
        const Block *block = &reading->blocks.items[i];
        for (uint32_t row = 0; block->relation && row < block->rows; row++) {
            added += fact_add(reading->store, block->relation, block_row(block, row));
            if (weigher)
                weigher->take(weigher->context, block->relation, block_row(block, row), NULL);
        }
    }
    for (size_t i = 0; weigher && i < reading->weights.count; i++) {
        const WeightRecord *record = &reading->weights.items[i];
        weigher->take(weigher->context, record->block->relation,
                      block_row(record->block, record->row), &record->weight);
    }
    return added;
}

// The facts come in only when all could be read.
static Status reading_end(Reading *reading, Status status, uint64_t *added) {
    ASSERT(status != STATUS_OK || reading->at == reading->end);
    *added = status == STATUS_OK ? add_facts(reading) : 0;
    for (size_t i = 0; i < reading->blocks.count; i++) free(reading->blocks.items[i].values);
    VECTOR_FREE(&reading->blocks);
    VECTOR_FREE(&reading->weights);
    VECTOR_FREE(&reading->constants);
    return status;
}

static Reading reading_of(const Archive *what, const char *path) {
    return (Reading){
        .store = what->store, .only = what->only, .weigher = what->weigher, .path = path};
}

Status store_load_bytes(const Archive *what, const uint8_t *bytes, size_t length, uint64_t *added) {
    Reading reading = reading_of(what, "bytes");
    reading.at = bytes;
    reading.end = bytes + length;
    return reading_end(&reading, take_all(&reading), added);
}

static Status map_check(const FileMap *map, const char *path) {
    const uint8_t *bytes = file_map_bytes(map);
    size_t length = file_map_length(map);
    if (length < HEADER || memcmp(bytes, magic, sizeof magic) != 0)
        return fail(STATUS_FORMAT, "%s does not hold facts of tl", path);
    Reading numbers = {.path = path, .at = bytes + sizeof magic, .end = bytes + HEADER};
    uint64_t size, sum;
    TRY(take(&numbers, 8, &size));
    TRY(take(&numbers, 8, &sum));
    bool whole = size == length - HEADER && sum == checksum(bytes + HEADER, length - HEADER);
    return whole ? STATUS_OK : fail_damaged(&numbers);
}

Status store_load(const Archive *what, const char *path, uint64_t *added) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    Reading reading = reading_of(what, path);
    Status status = map_check(map, path);
    if (status == STATUS_OK) {
        reading.at = file_map_bytes(map) + HEADER;
        reading.end = file_map_bytes(map) + file_map_length(map);
        status = take_all(&reading);
    }
    if (status == STATUS_OK) status = file_map_check(map);
    status = reading_end(&reading, status, added);
    file_map_release(map);
    return status;
}
