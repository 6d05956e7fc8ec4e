// Takes out of a module what its specialization constants never let it reach. Modules hold every
// dtype, operation and rank; a pipeline wants one of each, and drivers otherwise read, inline and
// optimise all of it first, which costs them up to a tenth of a second.
//
// Values are followed through the program as if it ran with these constants (sparse conditional
// constant propagation): what is known, whatever the data, decides branches; blocks that no branch
// reaches go. Everything else stays as it was, the constants too. Control flow stays structured:
// a selection that is decided is no selection any more; merge blocks and continue targets that
// something names stay as blocks that nothing reaches.
#include <stdlib.h>

#include "device/vulkan/spirv/prune.h"

enum {
    HEADER_WORDS = 5,
    BOUND_WORD = 3,
    OP_UNDEF = 1,
    OP_NAME = 5,
    OP_TYPE_FIRST = 19,
    OP_TYPE_BOOL = 20,
    OP_TYPE_INT = 21,
    OP_TYPE_LAST = 39,
    OP_TYPE_MATRIX_KHR = 4456,
    OP_TYPE_MATRIX_NV = 5358,
    OP_CONSTANT_TRUE = 41,
    OP_CONSTANT = 43,
    OP_SPEC_CONSTANT_TRUE = 48,
    OP_SPEC_CONSTANT_FALSE = 49,
    OP_SPEC_CONSTANT = 50,
    OP_SPEC_CONSTANT_OP = 52,
    OP_FUNCTION = 54,
    OP_DECORATE = 71,
    OP_PHI = 245,
    OP_LOOP_MERGE = 246,
    OP_SELECTION_MERGE = 247,
    OP_LABEL = 248,
    OP_BRANCH = 249,
    OP_BRANCH_CONDITIONAL = 250,
    OP_SWITCH = 251,
    OP_TERMINATOR_LAST = 255,
    OP_UNREACHABLE = 255,
    DECORATION_SPEC_ID = 1,
};

typedef enum Knowledge { UNSEEN, KNOWN, VARIES } Knowledge; // it only rises

typedef struct Id {
    uint64_t value; // while it is known
    uint32_t type;
    uint32_t block;     // of a label: the number of its block
    uint32_t constant;  // of a specialization constant: its number plus one
    uint8_t bits;       // of a type: of whole numbers and truth values (1); others have none
    bool is_type, gone; // gone: made in a block that is left out
    Knowledge knowledge;
} Id;

static const uint32_t every_way = UINT32_MAX;

// What is left of a block that nothing reaches.
typedef enum Remnant { REMNANT_NONE, REMNANT_MERGE, REMNANT_CONTINUE } Remnant;

typedef struct Block {
    uint32_t label;
    const uint32_t *first, *merge, *last; // after the label; NULL where there is none; terminator
    uint32_t way;                         // the label it goes on to, or every_way; 0: none yet
    bool live;
    bool undecided; // every way stays: part of a loop's continuation
    bool merges;    // its merge instruction stays
    Remnant remnant;
    const struct Block *header; // of REMNANT_CONTINUE: the loop's
} Block;

typedef struct Pruner {
    const uint32_t *words, *end;
    Id *ids;
    VECTOR(Block) blocks;
    uint32_t *out;
    size_t at;
    uint32_t bound;
} Pruner;

static uint32_t op_of(const uint32_t *word) {
    return *word & 0xFFFF;
}

static uint32_t length_of(const uint32_t *word) {
    return *word >> 16;
}

static const uint32_t *next_of(const uint32_t *word) {
    return word + length_of(word);
}

static Block *block_of(const Pruner *p, uint32_t label) {
    return &p->blocks.items[p->ids[label].block];
}

// --- reading -------------------------------------------------------------------------------------

static void read_type(Pruner *p, const uint32_t *word) {
    Id *type = &p->ids[word[1]];
    type->is_type = true;
    if (op_of(word) == OP_TYPE_BOOL) type->bits = 1;
    if (op_of(word) == OP_TYPE_INT) type->bits = (uint8_t)word[2];
}

static void read_constant(Pruner *p, const uint32_t *word, int n_constants,
                          const uint32_t *constants) {
    Id *id = &p->ids[word[2]];
    uint32_t op = op_of(word);
    uint64_t value = op == OP_CONSTANT_TRUE || op == OP_SPEC_CONSTANT_TRUE;
    if (op == OP_CONSTANT || op == OP_SPEC_CONSTANT)
        value = word[3] | (length_of(word) > 4 ? (uint64_t)word[4] << 32 : 0);
    if (id->constant > 0 && id->constant <= (uint32_t)n_constants)
        value = constants[id->constant - 1];
    id->knowledge = KNOWN;
    id->value = number_low_bits(value, p->ids[id->type].bits);
}

static bool learn(Pruner *p, const Block *block, const uint32_t *word);

// What stands before the functions.
static void read_declaration(Pruner *p, const uint32_t *word, int n_constants,
                             const uint32_t *constants) {
    uint32_t op = op_of(word);
    if ((op >= OP_TYPE_FIRST && op <= OP_TYPE_LAST) || op == OP_TYPE_MATRIX_KHR ||
        op == OP_TYPE_MATRIX_NV) {
        read_type(p, word);
    } else if (op == OP_DECORATE && word[2] == DECORATION_SPEC_ID) {
        p->ids[word[1]].constant = word[3] + 1;
    } else if (op >= OP_CONSTANT_TRUE && op <= OP_SPEC_CONSTANT_OP) {
        Id *id = &p->ids[word[2]];
        id->type = word[1];
        id->knowledge = VARIES;
        if (p->ids[id->type].bits == 0) return;
        if (op == OP_SPEC_CONSTANT_OP) {
            id->knowledge = UNSEEN;
            learn(p, NULL, word);
        } else if (op <= OP_CONSTANT || (op >= OP_SPEC_CONSTANT_TRUE && op <= OP_SPEC_CONSTANT)) {
            read_constant(p, word, n_constants, constants);
        }
    }
}

// The result of an instruction of a function, or 0: only results have a type before them.
static uint32_t result_of(const Pruner *p, const uint32_t *word) {
    return length_of(word) > 2 && word[1] < p->bound && p->ids[word[1]].is_type ? word[2] : 0;
}

static const uint32_t *read_block(Pruner *p, const uint32_t *label) {
    Block block = {.label = label[1], .first = next_of(label)};
    p->ids[label[1]].block = (uint32_t)p->blocks.count;
    const uint32_t *word = block.first;
    for (; op_of(word) < OP_BRANCH || op_of(word) > OP_TERMINATOR_LAST; word = next_of(word)) {
        if (op_of(word) == OP_LOOP_MERGE || op_of(word) == OP_SELECTION_MERGE) block.merge = word;
        uint32_t id = result_of(p, word);
        if (id == 0) continue;
        p->ids[id].type = word[1];
        p->ids[id].knowledge = p->ids[word[1]].bits > 0 ? UNSEEN : VARIES;
    }
    block.last = word;
    VECTOR_PUSH(&p->blocks, block);
    return next_of(word);
}

// The k-th label that a block may go on to; 0 after the last.
static uint32_t target_at(const Pruner *p, const Block *block, uint32_t k) {
    const uint32_t *word = block->last;
    uint32_t at = UINT32_MAX;
    if (op_of(word) == OP_BRANCH && k == 0) at = 1;
    if (op_of(word) == OP_BRANCH_CONDITIONAL && k < 2) at = 2 + k;
    if (op_of(word) == OP_SWITCH) {
        uint32_t literal = p->ids[p->ids[word[1]].type].bits > 32 ? 2 : 1;
        at = 2 + k * (literal + 1);
    }
    return at < length_of(word) ? word[at] : 0;
}

static bool goes_to(const Pruner *p, const Block *block, uint32_t label) {
    uint32_t target = 0;
    for (uint32_t k = 0; (target = target_at(p, block, k)) != 0; k++)
        if (target == label) return true;
    return false;
}

// A loop goes back to its header from one block at the end of its continuation; that way stays,
// decided or not.
static void keep_continuations(Pruner *p) {
    for (size_t h = 0; h < p->blocks.count; h++) {
        const Block *header = &p->blocks.items[h];
        if (!header->merge || op_of(header->merge) != OP_LOOP_MERGE) continue;
        size_t first = p->ids[header->merge[2]].block, last = h;
        for (size_t b = h; b < p->blocks.count; b++)
            if (goes_to(p, &p->blocks.items[b], header->label)) last = b;
        for (size_t b = first; b <= last; b++) p->blocks.items[b].undecided = true;
    }
}

// --- following -----------------------------------------------------------------------------------

static bool edge_is_live(const Pruner *p, uint32_t from, uint32_t to) {
    const Block *block = block_of(p, from);
    return block->live && (block->way == every_way || block->way == to);
}

// What is known of `into` when it may also be what is known of `from`.
static void meet(Id *into, const Id *from) {
    if (from->knowledge == UNSEEN) return;
    if (into->knowledge == UNSEEN) {
        into->knowledge = from->knowledge;
        into->value = from->value;
    } else if (from->knowledge == VARIES || into->value != from->value) {
        into->knowledge = VARIES;
    }
}

static Id learn_phi(const Pruner *p, const Block *block, const uint32_t *word) {
    Id found = {.knowledge = UNSEEN};
    for (uint32_t i = 3; i + 1 < length_of(word); i += 2)
        if (edge_is_live(p, word[i + 1], block->label)) meet(&found, &p->ids[word[i]]);
    return found;
}

// Where one operand says it all: x || true, x && false, x & 0.
static bool decides(uint32_t op, const Id *operand) {
    if (operand->knowledge != KNOWN) return false;
    if (op == OP_LOGICAL_OR) return operand->value != 0;
    return (op == OP_LOGICAL_AND || op == OP_BITWISE_AND) && operand->value == 0;
}

static Id learn_number(const Pruner *p, uint32_t op, int bits, const uint32_t *operands,
                       uint32_t n) {
    Id found = {.knowledge = VARIES};
    if (op == OP_SELECT) {
        const Id *condition = &p->ids[operands[0]];
        if (condition->knowledge == KNOWN) return p->ids[operands[condition->value ? 1 : 2]];
        found.knowledge = condition->knowledge;
        return found;
    }
    if (op < OP_U_CONVERT || op > OP_NOT || n < 1 || n > 2) return found;
    const Id *a = &p->ids[operands[0]], *b = &p->ids[operands[n - 1]];
    if (decides(op, a)) return *a;
    if (decides(op, b)) return *b;
    if (a->knowledge == VARIES || b->knowledge == VARIES) return found;
    if (a->knowledge == UNSEEN || b->knowledge == UNSEEN) return (Id){.knowledge = UNSEEN};
    Number numbers[2] = {{a->value, p->ids[a->type].bits}, {b->value, p->ids[b->type].bits}};
    if (numbers[0].bits > 0 && numbers[1].bits > 0 && fold_numbers(op, bits, numbers, &found.value))
        found.knowledge = KNOWN;
    return found;
}

// True when this says something new of the result. `block` is NULL for declarations.
static bool learn(Pruner *p, const Block *block, const uint32_t *word) {
    uint32_t result = result_of(p, word);
    Id *id = &p->ids[result];
    if (result == 0 || id->knowledge == VARIES) return false;
    uint32_t op = op_of(word), first = 3;
    if (op == OP_SPEC_CONSTANT_OP) op = word[first++];
    Id found = op == OP_PHI ? learn_phi(p, block, word)
                            : learn_number(p, op, p->ids[word[1]].bits, word + first,
                                           length_of(word) - first);
    if (found.knowledge == id->knowledge && (found.knowledge != KNOWN || found.value == id->value))
        return false;
    // A value that was known and is another now is none.
    id->knowledge = id->knowledge == KNOWN ? VARIES : found.knowledge;
    id->value = found.value;
    return true;
}

static uint32_t case_of(const Pruner *p, const Block *block, uint64_t value) {
    const uint32_t *word = block->last;
    uint32_t literal = p->ids[p->ids[word[1]].type].bits > 32 ? 2 : 1;
    for (uint32_t i = 3; i + literal < length_of(word); i += literal + 1) {
        uint64_t each = word[i] | (literal > 1 ? (uint64_t)word[i + 1] << 32 : 0);
        if (each == value) return word[i + literal];
    }
    return word[2];
}

static uint32_t way_of(const Pruner *p, const Block *block) {
    uint32_t op = op_of(block->last);
    if (op == OP_BRANCH) return block->last[1];
    if (op > OP_SWITCH || block->undecided) return every_way;
    const Id *condition = &p->ids[block->last[1]];
    if (condition->knowledge == UNSEEN) return 0;
    if (condition->knowledge == VARIES) return every_way;
    if (op == OP_SWITCH) return case_of(p, block, condition->value);
    return block->last[condition->value ? 2 : 3];
}

static bool follow(Pruner *p, Block *block) {
    bool news = false;
    for (const uint32_t *word = block->first; word < block->last; word = next_of(word))
        news |= learn(p, block, word);
    uint32_t way = way_of(p, block);
    if (way == block->way || block->way == every_way) return news;
    block->way = block->way == 0 ? way : every_way;
    uint32_t target = 0;
    for (uint32_t k = 0; (target = target_at(p, block, k)) != 0; k++)
        if (edge_is_live(p, block->label, target)) block_of(p, target)->live = true;
    return true;
}

static void follow_all(Pruner *p) {
    bool news = true;
    while (news) {
        news = false;
        for (size_t b = 0; b < p->blocks.count; b++)
            if (p->blocks.items[b].live) news |= follow(p, &p->blocks.items[b]);
    }
}

// --- writing -------------------------------------------------------------------------------------

static bool is_decided(const Block *block) {
    return op_of(block->last) != OP_BRANCH && op_of(block->last) <= OP_SWITCH &&
           block->way != every_way;
}

// Whether the blocks from `label` on lead to `merge` one after the other, whole selections and
// loops counted as one: then nothing breaks out of what is between.
static bool leads_straight(const Pruner *p, uint32_t label, uint32_t merge) {
    for (size_t steps = 0; steps < p->blocks.count; steps++) {
        if (label == merge) return true;
        const Block *block = block_of(p, label);
        if (block->merge && !is_decided(block))
            label = block->merge[1];
        else if (block->way != every_way)
            label = block->way;
        else
            return false;
        if (!block_of(p, label)->live) return false;
    }
    return false;
}

static int live_ways_to(const Pruner *p, uint32_t label) {
    int count = 0;
    for (size_t b = 0; b < p->blocks.count; b++) {
        const Block *block = &p->blocks.items[b];
        count += block->live && goes_to(p, block, label) && edge_is_live(p, block->label, label);
    }
    return count;
}

// A switch that is decided may still be what its blocks break out of.
static bool keeps_merge(const Pruner *p, const Block *block) {
    if (!block->merge) return false;
    if (op_of(block->merge) == OP_LOOP_MERGE || !is_decided(block)) return true;
    if (op_of(block->last) != OP_SWITCH) return false;
    uint32_t merge = block->merge[1];
    if (!block_of(p, merge)->live) return false;
    return !leads_straight(p, block->way, merge) || live_ways_to(p, merge) > 1;
}

static void plan(Pruner *p) {
    for (size_t b = 0; b < p->blocks.count; b++) {
        Block *block = &p->blocks.items[b];
        if (!block->live) {
            for (const uint32_t *word = block->first; word < block->last; word = next_of(word))
                p->ids[result_of(p, word)].gone = true;
            continue;
        }
        ASSERT(block->way != 0);
        block->merges = keeps_merge(p, block);
        if (!block->merges) continue;
        Block *merge = block_of(p, block->merge[1]);
        if (!merge->live && merge->remnant == REMNANT_NONE) merge->remnant = REMNANT_MERGE;
        if (op_of(block->merge) != OP_LOOP_MERGE) continue;
        Block *again = block_of(p, block->merge[2]);
        if (again->live) continue;
        again->remnant = REMNANT_CONTINUE;
        again->header = block;
    }
}

static void copy(Pruner *p, const uint32_t *word) {
    memcpy(p->out + p->at, word, length_of(word) * sizeof *word);
    p->at += length_of(word);
}

static void emit(Pruner *p, uint32_t op, int n, const uint32_t *operands) {
    p->out[p->at++] = op | (uint32_t)(n + 1) << 16;
    for (int i = 0; i < n; i++) p->out[p->at++] = operands[i];
}
#define EMIT(p, op, ...)                                                                           \
    emit(p, op, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

// A loop that nothing continues: from there its values are whatever they are. The remnant numbers
// them from the bound in the order of the header's phis, and is written after the header.
static void emit_phi(Pruner *p, const Block *block, const uint32_t *word, uint32_t *undefined) {
    size_t start = p->at;
    p->at += 3;
    for (uint32_t i = 3; i + 1 < length_of(word); i += 2) {
        if (!edge_is_live(p, word[i + 1], block->label)) continue;
        p->out[p->at++] = word[i];
        p->out[p->at++] = word[i + 1];
    }
    const Block *again =
        block->merges && op_of(block->merge) == OP_LOOP_MERGE ? block_of(p, block->merge[2]) : NULL;
    if (again && again->remnant == REMNANT_CONTINUE) {
        p->out[p->at++] = (*undefined)++;
        p->out[p->at++] = again->label;
    }
    p->out[start] = OP_PHI | (uint32_t)(p->at - start) << 16;
    p->out[start + 1] = word[1];
    p->out[start + 2] = word[2];
}

static void emit_remnant(Pruner *p, const Block *block) {
    EMIT(p, OP_LABEL, block->label);
    if (block->remnant == REMNANT_MERGE) {
        emit(p, OP_UNREACHABLE, 0, NULL);
        return;
    }
    const Block *header = block->header;
    for (const uint32_t *word = header->first; op_of(word) == OP_PHI; word = next_of(word))
        EMIT(p, OP_UNDEF, word[1], p->ids[word[2]].block);
    EMIT(p, OP_BRANCH, header->label);
}

static void emit_block(Pruner *p, const Block *block) {
    EMIT(p, OP_LABEL, block->label);
    for (const uint32_t *word = block->first; word < block->last; word = next_of(word)) {
        if (op_of(word) == OP_PHI) {
            p->ids[word[2]].block =
                p->bound; // a value is no label: the remnant finds the name there
            emit_phi(p, block, word, &p->bound);
        } else if (word != block->merge || block->merges) {
            copy(p, word);
        }
    }
    if (!is_decided(block))
        copy(p, block->last);
    else if (block->merges && op_of(block->last) == OP_SWITCH)
        EMIT(p, OP_SWITCH, block->last[1], block->way);
    else
        EMIT(p, OP_BRANCH, block->way);
}

static void emit_all(Pruner *p) {
    memcpy(p->out, p->words, HEADER_WORDS * sizeof *p->out);
    p->at = HEADER_WORDS;
    for (const uint32_t *word = p->words + HEADER_WORDS; word < p->end; word = next_of(word)) {
        uint32_t op = op_of(word);
        if (op == OP_LABEL) {
            const Block *block = block_of(p, word[1]);
            if (block->live)
                emit_block(p, block);
            else if (block->remnant != REMNANT_NONE)
                emit_remnant(p, block);
            word = block->last;
        } else if ((op != OP_DECORATE && op != OP_NAME) || !p->ids[word[1]].gone) {
            copy(p, word);
        }
    }
    p->out[BOUND_WORD] = p->bound;
}

uint32_t *module_prune(const uint32_t *words, size_t *bytes, int n_constants,
                       const uint32_t *constants) {
    size_t count = *bytes / sizeof *words;
    Pruner p = {.words = words, .end = words + count, .bound = words[BOUND_WORD]};
    p.ids = memory_allocate_zeroed(p.bound, sizeof *p.ids);
    for (uint32_t i = 0; i < p.bound; i++) p.ids[i].knowledge = VARIES;
    bool entry = false, declarations = true;
    for (const uint32_t *word = p.words + HEADER_WORDS; word < p.end;) {
        if (op_of(word) == OP_FUNCTION) entry = true, declarations = false;
        if (op_of(word) == OP_LABEL) {
            word = read_block(&p, word);
            p.blocks.items[p.blocks.count - 1].live = entry;
            entry = false;
            continue;
        }
        if (declarations) read_declaration(&p, word, n_constants, constants);
        word = next_of(word);
    }
    keep_continuations(&p);
    follow_all(&p);
    plan(&p);
    p.out = memory_allocate((2 * count + HEADER_WORDS) * sizeof *p.out);
    emit_all(&p);
    *bytes = p.at * sizeof *p.out;
    VECTOR_FREE(&p.blocks);
    free(p.ids);
    return p.out;
}
