// P(X, Y) <- A(X, M), P(M, N), B(N, Y) is the product A P B of Boolean matrices. A and B stay lists
// of edges; a product from the left adds, for each edge, a row to another, and one from the right
// is one from the left of the transposed matrices. Each round multiplies only what the last one
// added. More goals of X and Y are filters of a product: P(X, Y) <- A(X, M), B(M, Y), C(Y, X).
#include "logic/matrix.h"

#include <stdlib.h>

#include "logic/evaluate.h"

enum {
    TILE = 64,
    MATRICES = 6,
    LINKS_MAX = 16,
    FILTERS_MAX = 4,
    PARTS = 8, // of the work, where there are several threads
};

typedef struct Link { // a goal of a chain
    Relation *relation;
    bool back; // from its second column to its first
} Link;

typedef struct Chain {
    Link links[LINKS_MAX];
    uint32_t count, self; // where the relation itself stands; `count`: nowhere
    bool apart;           // X != Y
    Link filters[FILTERS_MAX];
    uint32_t filter_count;
} Chain;

typedef struct Matrix {
    uint64_t *bits;
    bool *any; // whether the row has bits
} Matrix;

typedef struct Edges {
    const Relation *relation;
    uint32_t *from, *to;
    uint32_t count;
} Edges;

typedef struct Product {
    Store *store;
    Relation *relation;
    VECTOR(Chain) chains;
    VECTOR(Edges) edges;
    Table *nodes;
    size_t size, words; // of a row: whole tiles
    int64_t parts;      // of work that is shared out
    Status status;      // of it
} Product;

// What parts of an operation on matrices work at.
typedef struct Work {
    const Product *product;
    const Edges *edges;
    bool back;
    Matrix *from, *to;
} Work;

// --- chains

static bool is_pair(const Goal *goal) {
    return goal->kind == GOAL_ATOM && goal->relation->arity == 2 &&
           goal->terms[0].kind == TERM_VARIABLE && goal->terms[1].kind == TERM_VARIABLE &&
           goal->terms[0].value != goal->terms[1].value;
}

// X != Y of the head's own variables.
static bool is_apart(const Rule *rule, const Goal *goal) {
    if (goal->kind != GOAL_COMPARE || goal->comparison != COMPARE_NE ||
        goal->left->kind != ARITHMETIC_VARIABLE || goal->right->kind != ARITHMETIC_VARIABLE)
        return false;
    uint32_t a = goal->left->value, b = goal->right->value;
    uint32_t x = rule->head[0].value, y = rule->head[1].value;
    return (a == x && b == y) || (a == y && b == x);
}

// The only goal not passed yet that holds the variable; -1: none, or several.
static int goal_with(const Rule *rule, const bool *passed, uint32_t variable) {
    int found = -1;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        if (passed[i] || !is_pair(goal)) continue;
        if (goal->terms[0].value != variable && goal->terms[1].value != variable) continue;
        if (found >= 0) return -1;
        found = (int)i;
    }
    return found;
}

static bool chain_add(const Rule *rule, Chain *chain, const Goal *goal, bool back) {
    ASSERT(goal->relation && goal->relation->arity == 2);
    bool self = goal->relation == rule->relation;
    bool fits = chain->count < LINKS_MAX && !(self && chain->self != UINT32_MAX) &&
                (self || goal->relation->stratum < rule->relation->stratum);
    if (!fits) return false;
    if (self) chain->self = chain->count;
    chain->links[chain->count++] = (Link){goal->relation, back};
    return true;
}

static bool is_filter(const Rule *rule, const Goal *goal) {
    uint32_t a = goal->terms[0].value, b = goal->terms[1].value;
    uint32_t x = rule->head[0].value, y = rule->head[1].value;
    return goal->relation->stratum < rule->relation->stratum &&
           ((a == x && b == y) || (a == y && b == x));
}

// Takes goals of the head's own variables, but not the last that is left to go from one to the
// other; true: there was room.
static bool filters_take(const Rule *rule, Chain *chain, bool *passed, uint32_t *left) {
    for (uint32_t i = 0; *left > 1 && i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        if (!is_pair(goal) || !is_filter(rule, goal)) continue;
        if (chain->filter_count == FILTERS_MAX) return false;
        bool back = goal->terms[0].value != rule->head[0].value;
        chain->filters[chain->filter_count++] = (Link){goal->relation, back};
        passed[i] = true;
        --*left;
    }
    return true;
}

// The goals as a way from the head's first variable to its second.
static bool chain_find(const Rule *rule, Chain *chain) {
    bool passed[64] = {false};
    *chain = (Chain){.self = UINT32_MAX};
    if (rule->aggregates || rule->goal_count > sizeof passed ||
        rule->head[0].kind != TERM_VARIABLE || rule->head[1].kind != TERM_VARIABLE ||
        rule->head[0].value == rule->head[1].value)
        return false;
    uint32_t left = 0, at = rule->head[0].value;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        if (!is_pair(&rule->goals[i]) && !is_apart(rule, &rule->goals[i])) return false;
        chain->apart |= !is_pair(&rule->goals[i]);
        left += is_pair(&rule->goals[i]);
    }
    if (!filters_take(rule, chain, passed, &left)) return false;
    for (; left > 0; left--) {
        int next = goal_with(rule, passed, at);
        if (next < 0 || at == rule->head[1].value) return false;
        const Goal *goal = &rule->goals[next];
        bool back = goal->terms[1].value == at;
        passed[next] = true;
        at = goal->terms[!back].value;
        if (!chain_add(rule, chain, goal, back)) return false;
    }
    if (chain->self == UINT32_MAX) chain->self = chain->count;
    return chain->count > 0 && at == rule->head[1].value;
}

static bool chains_find(Product *product) {
    const Relation *relation = product->relation;
    if (relation->arity != 2 || relation->key != columns_all(2)) return false;
    for (size_t i = 0; i < relation->rules.count; i++) {
        Chain chain;
        if (!chain_find(relation->rules.items[i], &chain)) return false;
        VECTOR_PUSH(&product->chains, chain);
    }
    return relation->rules.count > 0;
}

// --- nodes and edges

// Edges by where they begin come together, as they stand in the table.
static void edges_read(Product *product, const Relation *relation, const Table *table) {
    ASSERT(table->arity == 2);
    Edges edges = {.relation = relation};
    edges.from = memory_allocate((table->count + 1) * sizeof *edges.from);
    edges.to = memory_allocate((table->count + 1) * sizeof *edges.to);
    for (uint32_t row = 0; row < table->count; row++) {
        if (table_is_dead(table, row)) continue;
        edges.from[edges.count] = table_number(product->nodes, table_at(table, row, 0));
        edges.to[edges.count++] = table_number(product->nodes, table_at(table, row, 1));
    }
    VECTOR_PUSH(&product->edges, edges);
}

static const Edges *edges_of(const Product *product, const Relation *relation) {
    for (size_t i = 0; i < product->edges.count; i++)
        if (product->edges.items[i].relation == relation) return &product->edges.items[i];
    return NULL;
}

static Status links_read(Product *product, const Link *links, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        Relation *relation = links[i].relation;
        if (edges_of(product, relation)) continue;
        TRY(store_gather(product->store, relation));
        edges_read(product, relation, relation_table(relation));
    }
    return STATUS_OK;
}

static Status product_read(Product *product) {
    edges_read(product, product->relation, product->relation->facts);
    for (size_t i = 0; i < product->chains.count; i++) {
        const Chain *chain = &product->chains.items[i];
        TRY(links_read(product, chain->links, chain->count));
        TRY(links_read(product, chain->filters, chain->filter_count));
    }
    product->size = ((size_t)product->nodes->count + TILE - 1) / TILE * TILE;
    product->words = product->size / 64;
    return STATUS_OK;
}

// X != Y compares numbers by value: an int and a float may be equal on different nodes.
static bool has_floats(const Product *product) {
    const ConstantTable *constants = &product->store->constants;
    for (uint32_t i = 0; i < product->nodes->count; i++) {
        ConstantKind kind = constant_kind(constants, table_at(product->nodes, i, 0));
        if (kind != CONSTANT_TEXT && kind != CONSTANT_INT) return true;
    }
    return false;
}

// --- matrices

static Matrix matrix_new(const Product *product) {
    return (Matrix){
        memory_allocate_zeroed(product->size * product->words + 1, sizeof(uint64_t)),
        memory_allocate_zeroed(product->size + 1, sizeof(bool)),
    };
}

static void matrix_free(Matrix *matrix) {
    free(matrix->bits);
    free(matrix->any);
}

static void matrix_clear(const Product *product, Matrix *matrix) {
    for (size_t row = 0; row < product->size; row++) {
        if (!matrix->any[row]) continue;
        memset(matrix->bits + row * product->words, 0, product->words * sizeof(uint64_t));
        matrix->any[row] = false;
    }
}

static void row_add(const Product *product, Matrix *to, size_t row, const uint64_t *bits) {
    ASSERT(row < product->size);
    uint64_t *into = to->bits + row * product->words;
    for (size_t i = 0; i < product->words; i++) into[i] |= bits[i];
    to->any[row] = true;
}

static void matrix_add(const Product *product, Matrix *to, const Matrix *from) {
    for (size_t row = 0; row < product->size; row++)
        if (from->any[row]) row_add(product, to, row, from->bits + row * product->words);
}

static void matrix_add_edges(const Product *product, Matrix *to, const Edges *edges, bool back) {
    for (uint32_t i = 0; i < edges->count; i++) {
        uint32_t from = back ? edges->to[i] : edges->from[i];
        uint32_t end = back ? edges->from[i] : edges->to[i];
        to->bits[from * product->words + end / 64] |= (uint64_t)1 << end % 64;
        to->any[from] = true;
    }
}

// After a part was left because the user interrupts, the rest is left as well.
static void share(Product *product, void (*body)(void *, int64_t, int64_t), Work *work) {
    work->product = product;
    if (product->status == STATUS_OK)
        product->status = store_share(product->store, product->parts, body, work);
}

// Where a part of what is `count` long begins.
static size_t part_begin(const Product *product, int64_t part, size_t count) {
    return count * (size_t)part / (size_t)product->parts;
}

// The matrix that has been made takes the place of the one that it was made from.
static void matrix_replace(const Product *product, Matrix *matrix, Matrix *made) {
    matrix_clear(product, matrix);
    Matrix cleared = *matrix;
    *matrix = *made;
    *made = cleared;
}

// Some words of each row.
static void parts_multiply(void *context, int64_t begin, int64_t end) {
    const Work *work = context;
    const Edges *edges = work->edges;
    size_t words = work->product->words;
    size_t low = part_begin(work->product, begin, words);
    size_t high = part_begin(work->product, end, words);
    ASSERT(low <= high && high <= words);
    for (uint32_t i = 0; i < edges->count; i++) {
        uint32_t from = work->back ? edges->to[i] : edges->from[i];
        uint32_t to = work->back ? edges->from[i] : edges->to[i];
        if (!work->from->any[to]) continue;
        const uint64_t *bits = work->from->bits + to * words;
        uint64_t *into = work->to->bits + from * words;
        for (size_t word = low; word < high; word++) into[word] |= bits[word];
    }
}

// *matrix = edges * *matrix; `other` is cleared room, and is room afterwards.
static void multiply(Product *product, const Edges *edges, bool back, Matrix *matrix,
                     Matrix *other) {
    for (uint32_t i = 0; i < edges->count; i++)
        other->any[back ? edges->to[i] : edges->from[i]] |=
            matrix->any[back ? edges->from[i] : edges->to[i]];
    Work work = {.edges = edges, .back = back, .from = matrix, .to = other};
    share(product, parts_multiply, &work);
    matrix_replace(product, matrix, other);
}

// 64 rows of 64 bits: halves, quarters ... change places.
static void tile_transpose(uint64_t *tile) {
    uint64_t mask = 0x00000000ffffffffu;
    for (unsigned width = TILE / 2; width; width /= 2, mask ^= mask << width)
        for (unsigned i = 0; i < TILE; i = ((i | width) + 1) & ~width) {
            uint64_t moved = (tile[i] >> width ^ tile[i | width]) & mask;
            tile[i] ^= moved << width;
            tile[i | width] ^= moved;
        }
}

static void parts_transpose(void *context, int64_t begin, int64_t end) {
    const Work *work = context;
    const Matrix *matrix = work->from;
    size_t size = work->product->size, words = work->product->words;
    size_t low = part_begin(work->product, begin, words);
    size_t limit = part_begin(work->product, end, words);
    for (size_t high = 0; high < size; high += TILE) {
        if (!memchr(matrix->any + high, true, TILE)) continue;
        for (size_t word = low; word < limit; word++) {
            uint64_t tile[TILE], all = 0;
            for (size_t i = 0; i < TILE; i++)
                all |= tile[i] = matrix->bits[(high + i) * words + word];
            if (!all) continue;
            tile_transpose(tile);
            for (size_t i = 0; i < TILE; i++) {
                work->to->bits[(word * TILE + i) * words + high / TILE] = tile[i];
                work->to->any[word * TILE + i] |= tile[i] != 0;
            }
        }
    }
}

static void transpose(Product *product, Matrix *matrix, Matrix *other) {
    Work work = {.from = matrix, .to = other};
    share(product, parts_transpose, &work);
    matrix_replace(product, matrix, other);
}

// `other` is cleared room.
static void filter_apply(const Product *product, const Link *filter, Matrix *matrix,
                         Matrix *other) {
    matrix_add_edges(product, other, edges_of(product, filter->relation), filter->back);
    for (size_t row = 0; row < product->size; row++) {
        size_t begin = row * product->words;
        for (size_t i = 0; matrix->any[row] && i < product->words; i++)
            matrix->bits[begin + i] &= other->bits[begin + i];
    }
    matrix_clear(product, other);
}

// What a chain gives; `matrix` holds the relation's part, or nothing where the chain has none.
static void chain_multiply(Product *product, const Chain *chain, Matrix *matrix, Matrix *other) {
    ASSERT(chain->count > 0 && chain->count <= LINKS_MAX);
    bool has_self = chain->self < chain->count;
    uint32_t self = has_self ? chain->self : chain->count - 1;
    const Link *links = chain->links;
    if (!has_self)
        matrix_add_edges(product, matrix, edges_of(product, links[self].relation),
                         links[self].back);
    else if (links[self].back)
        transpose(product, matrix, other);
    for (uint32_t i = self; i-- > 0;)
        multiply(product, edges_of(product, links[i].relation), links[i].back, matrix, other);
    if (self + 1 < chain->count) {
        transpose(product, matrix, other);
        for (uint32_t i = self + 1; i < chain->count; i++)
            multiply(product, edges_of(product, links[i].relation), !links[i].back, matrix, other);
        transpose(product, matrix, other);
    }
    for (uint32_t i = 0; i < chain->filter_count; i++)
        filter_apply(product, &chain->filters[i], matrix, other);
    for (size_t i = 0; chain->apart && i < product->size; i++)
        matrix->bits[i * product->words + i / 64] &= ~((uint64_t)1 << i % 64);
}

// --- rounds

static void parts_keep_new(void *context, int64_t begin, int64_t end) {
    const Work *work = context;
    Matrix *found = work->from, *all = work->to;
    size_t words = work->product->words, size = work->product->size;
    size_t limit = part_begin(work->product, end, size);
    for (size_t row = part_begin(work->product, begin, size); row < limit; row++) {
        if (!found->any[row]) continue;
        uint64_t left = 0, *bits = found->bits + row * words, *have = all->bits + row * words;
        for (size_t i = 0; i < words; i++) {
            bits[i] &= ~have[i];
            have[i] |= bits[i];
            left |= bits[i];
        }
        found->any[row] = left != 0;
        all->any[row] |= left != 0;
    }
}

// Of what a round has found the new pairs are left, and added; false: there are none.
static bool keep_new(Product *product, Matrix *all, Matrix *found) {
    Work work = {.from = found, .to = all};
    share(product, parts_keep_new, &work);
    return memchr(found->any, true, product->size);
}

// `recursive`: the chains with the relation, from what was new; else the others.
static void round_run(Product *product, bool recursive, const Matrix *new, Matrix *found,
                      Matrix room[2]) {
    for (size_t i = 0; i < product->chains.count; i++) {
        const Chain *chain = &product->chains.items[i];
        if ((chain->self < chain->count) != recursive) continue;
        if (recursive) matrix_add(product, &room[0], new);
        chain_multiply(product, chain, &room[0], &room[1]);
        matrix_add(product, found, &room[0]);
        matrix_clear(product, &room[0]);
    }
}

static Status rounds_run(Product *product, Matrix *all) {
    Matrix found = matrix_new(product), new = matrix_new(product);
    Matrix room[2] = {matrix_new(product), matrix_new(product)};
    matrix_add_edges(product, &found, edges_of(product, product->relation), false);
    round_run(product, false, NULL, &found, room);
    while (keep_new(product, all, &found) && product->status == STATUS_OK) {
        Matrix last = new;
        new = found;
        found = last;
        matrix_clear(product, &found);
        round_run(product, true, &new, &found, room);
    }
    matrix_free(&found);
    matrix_free(&new);
    matrix_free(&room[0]);
    matrix_free(&room[1]);
    return product->status;
}

static void product_free(Product *product) {
    for (size_t i = 0; i < product->edges.count; i++) {
        free(product->edges.items[i].from);
        free(product->edges.items[i].to);
    }
    VECTOR_FREE(&product->edges);
    VECTOR_FREE(&product->chains);
    table_free(product->nodes);
}

// Whether the matrices have room, and X != Y means different nodes.
static bool is_possible(const Product *product) {
    bool apart = false;
    for (size_t i = 0; i < product->chains.count; i++) apart |= product->chains.items[i].apart;
    double bytes = (double)product->size * (double)product->words * sizeof(uint64_t) * MATRICES;
    const CellsRoom *room = &product->store->room;
    if (room->wanted == REPRESENTATION_TUPLES || (apart && has_floats(product))) return false;
    return bytes <= (double)(room->bytes_most - room->bytes);
}

Status matrix_count(Store *store, Relation *relation, uint64_t *out, bool *done) {
    ASSERT(relation->arity <= ARITY_MAX);
    Product product = {.store = store, .relation = relation, .nodes = table_new(1, 1)};
    product.parts = store->host.share ? PARTS : 1;
    *done = false;
    Status status = chains_find(&product) ? product_read(&product) : STATUS_OK;
    if (status == STATUS_OK && product.edges.count > 0 && is_possible(&product)) {
        Matrix all = matrix_new(&product);
        status = rounds_run(&product, &all);
        *out = 0;
        for (size_t i = 0; i < product.size * product.words; i++)
            *out += (uint64_t)__builtin_popcountll(all.bits[i]);
        *done = status == STATUS_OK;
        matrix_free(&all);
    }
    product_free(&product);
    return status;
}
