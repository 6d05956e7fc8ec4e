// Takes out of a module what its specialization constants never let it reach. Modules hold every
// dtype, operation and rank; a pipeline wants one of each, and drivers otherwise read, inline and
// optimise all of it first, which costs them up to a tenth of a second.
//
// Values are followed through the program as if it ran with these constants (sparse conditional
// constant propagation): what is known, whatever the data, decides branches; blocks that no branch
// reaches go. Everything else stays as it was, the constants too. Control flow stays structured:
// a selection that is decided is not a selection any more; merge blocks and continue targets that
// something names stay as blocks that nothing reaches.
#include <stdlib.h>

#include "device/vulkan/spirv/fold.h"
#include "device/vulkan/spirv/spirv.h"

typedef enum Knowledge { UNSEEN, KNOWN, VARIES } Knowledge; // it only rises

typedef struct Id {
    uint64_t value; // while it is known
    uint32_t type;
    uint32_t block;     // of a label: the number of its block
    uint32_t constant;  // of a specialization constant: its number plus one
    uint8_t bits;       // of a type: of integers and booleans (1); others have none
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
    SpirvWriter out;
    uint32_t bound;
} Pruner;

static Block *block_of(const Pruner *p, uint32_t label) {
    return &p->blocks.items[p->ids[label].block];
}

// --- reading -------------------------------------------------------------------------------------

static void read_type(Pruner *p, const uint32_t *word) {
    Id *type = &p->ids[word[1]];
    type->is_type = true;
    if (spirv_op(word) == SpvOpTypeBool) type->bits = 1;
    if (spirv_op(word) == SpvOpTypeInt) type->bits = (uint8_t)word[2];
}

static void read_constant(Pruner *p, const uint32_t *word, int n_constants,
                          const uint32_t *constants) {
    Id *id = &p->ids[word[2]];
    uint32_t op = spirv_op(word);
    uint64_t value = op == SpvOpConstantTrue || op == SpvOpSpecConstantTrue;
    if (op == SpvOpConstant || op == SpvOpSpecConstant)
        value = word[3] | (spirv_length(word) > 4 ? (uint64_t)word[4] << 32 : 0);
    if (id->constant > 0 && id->constant <= (uint32_t)n_constants)
        value = constants[id->constant - 1];
    id->knowledge = KNOWN;
    id->value = number_low_bits(value, p->ids[id->type].bits);
}

static bool learn(Pruner *p, const Block *block, const uint32_t *word);

// What stands before the functions.
static void read_declaration(Pruner *p, const uint32_t *word, int n_constants,
                             const uint32_t *constants) {
    uint32_t op = spirv_op(word);
    if ((op >= SpvOpTypeVoid && op <= SpvOpTypeForwardPointer) || op == SPIRV_OP_TYPE_MATRIX ||
        op == SpvOpTypeCooperativeMatrixNV) {
        read_type(p, word);
    } else if (op == SpvOpDecorate && word[2] == SpvDecorationSpecId) {
        p->ids[word[1]].constant = word[3] + 1;
    } else if (op >= SpvOpConstantTrue && op <= SpvOpSpecConstantOp) {
        Id *id = &p->ids[word[2]];
        id->type = word[1];
        id->knowledge = VARIES;
        if (p->ids[id->type].bits == 0) return;
        if (op == SpvOpSpecConstantOp) {
            id->knowledge = UNSEEN;
            learn(p, NULL, word);
        } else if (op <= SpvOpConstant ||
                   (op >= SpvOpSpecConstantTrue && op <= SpvOpSpecConstant)) {
            read_constant(p, word, n_constants, constants);
        }
    }
}

// The result of an instruction of a function, or 0: only results have a type before them.
static uint32_t result_of(const Pruner *p, const uint32_t *word) {
    return spirv_length(word) > 2 && word[1] < p->bound && p->ids[word[1]].is_type ? word[2] : 0;
}

static const uint32_t *read_block(Pruner *p, const uint32_t *label) {
    Block block = {.label = label[1], .first = spirv_next(label)};
    p->ids[label[1]].block = (uint32_t)p->blocks.count;
    const uint32_t *word = block.first;
    for (; spirv_op(word) < SpvOpBranch || spirv_op(word) > SpvOpUnreachable;
         word = spirv_next(word)) {
        if (spirv_op(word) == SpvOpLoopMerge || spirv_op(word) == SpvOpSelectionMerge)
            block.merge = word;
        uint32_t id = result_of(p, word);
        if (id == 0) continue;
        p->ids[id].type = word[1];
        p->ids[id].knowledge = p->ids[word[1]].bits > 0 ? UNSEEN : VARIES;
    }
    block.last = word;
    VECTOR_PUSH(&p->blocks, block);
    return spirv_next(word);
}

// The k-th label that a block may go on to; 0 after the last.
static uint32_t target_at(const Pruner *p, const Block *block, uint32_t k) {
    const uint32_t *word = block->last;
    uint32_t at = UINT32_MAX;
    if (spirv_op(word) == SpvOpBranch && k == 0) at = 1;
    if (spirv_op(word) == SpvOpBranchConditional && k < 2) at = 2 + k;
    if (spirv_op(word) == SpvOpSwitch) {
        uint32_t literal = p->ids[p->ids[word[1]].type].bits > 32 ? 2 : 1;
        at = 2 + k * (literal + 1);
    }
    return at < spirv_length(word) ? word[at] : 0;
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
        if (!header->merge || spirv_op(header->merge) != SpvOpLoopMerge) continue;
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
    for (uint32_t i = 3; i + 1 < spirv_length(word); i += 2)
        if (edge_is_live(p, word[i + 1], block->label)) meet(&found, &p->ids[word[i]]);
    return found;
}

// Where one operand says it all: x || true, x && false, x & 0.
static bool decides(uint32_t op, const Id *operand) {
    if (operand->knowledge != KNOWN) return false;
    if (op == SpvOpLogicalOr) return operand->value != 0;
    return (op == SpvOpLogicalAnd || op == SpvOpBitwiseAnd) && operand->value == 0;
}

static Id number_after(const Pruner *p, uint32_t op, int bits, const uint32_t *operands,
                       uint32_t n) {
    Id found = {.knowledge = VARIES};
    if (op == SpvOpSelect) {
        const Id *condition = &p->ids[operands[0]];
        if (condition->knowledge == KNOWN) return p->ids[operands[condition->value ? 1 : 2]];
        found.knowledge = condition->knowledge;
        return found;
    }
    if (op < SpvOpUConvert || op > SpvOpNot || n < 1 || n > 2) return found;
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
    uint32_t op = spirv_op(word), first = 3;
    if (op == SpvOpSpecConstantOp) op = word[first++];
    Id found = op == SpvOpPhi ? learn_phi(p, block, word)
                              : number_after(p, op, p->ids[word[1]].bits, word + first,
                                             spirv_length(word) - first);
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
    for (uint32_t i = 3; i + literal < spirv_length(word); i += literal + 1) {
        uint64_t each = word[i] | (literal > 1 ? (uint64_t)word[i + 1] << 32 : 0);
        if (each == value) return word[i + literal];
    }
    return word[2];
}

static uint32_t way_of(const Pruner *p, const Block *block) {
    uint32_t op = spirv_op(block->last);
    if (op == SpvOpBranch) return block->last[1];
    if (op > SpvOpSwitch || block->undecided) return every_way;
    const Id *condition = &p->ids[block->last[1]];
    if (condition->knowledge == UNSEEN) return 0;
    if (condition->knowledge == VARIES) return every_way;
    if (op == SpvOpSwitch) return case_of(p, block, condition->value);
    return block->last[condition->value ? 2 : 3];
}

static bool follow(Pruner *p, Block *block) {
    bool news = false;
    for (const uint32_t *word = block->first; word < block->last; word = spirv_next(word))
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
    return spirv_op(block->last) != SpvOpBranch && spirv_op(block->last) <= SpvOpSwitch &&
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
    if (spirv_op(block->merge) == SpvOpLoopMerge || !is_decided(block)) return true;
    if (spirv_op(block->last) != SpvOpSwitch) return false;
    uint32_t merge = block->merge[1];
    if (!block_of(p, merge)->live) return false;
    return !leads_straight(p, block->way, merge) || live_ways_to(p, merge) > 1;
}

static void plan(Pruner *p) {
    for (size_t b = 0; b < p->blocks.count; b++) {
        Block *block = &p->blocks.items[b];
        if (!block->live) {
            for (const uint32_t *word = block->first; word < block->last; word = spirv_next(word))
                p->ids[result_of(p, word)].gone = true;
            continue;
        }
        ASSERT(block->way != 0);
        block->merges = keeps_merge(p, block);
        if (!block->merges) continue;
        Block *merge = block_of(p, block->merge[1]);
        if (!merge->live && merge->remnant == REMNANT_NONE) merge->remnant = REMNANT_MERGE;
        if (spirv_op(block->merge) != SpvOpLoopMerge) continue;
        Block *again = block_of(p, block->merge[2]);
        if (again->live) continue;
        again->remnant = REMNANT_CONTINUE;
        again->header = block;
    }
}

// A loop that nothing continues: from there its values are whatever they are. The remnant numbers
// them from the bound in the order of the header's phis, and is written after the header.
static void emit_phi(Pruner *p, const Block *block, const uint32_t *word, uint32_t *undefined) {
    size_t start = p->out.count;
    p->out.count += 3;
    for (uint32_t i = 3; i + 1 < spirv_length(word); i += 2) {
        if (!edge_is_live(p, word[i + 1], block->label)) continue;
        p->out.words[p->out.count++] = word[i];
        p->out.words[p->out.count++] = word[i + 1];
    }
    const Block *again = block->merges && spirv_op(block->merge) == SpvOpLoopMerge
                             ? block_of(p, block->merge[2])
                             : NULL;
    if (again && again->remnant == REMNANT_CONTINUE) {
        p->out.words[p->out.count++] = (*undefined)++;
        p->out.words[p->out.count++] = again->label;
    }
    p->out.words[start] = spirv_head(SpvOpPhi, (uint32_t)(p->out.count - start));
    p->out.words[start + 1] = word[1];
    p->out.words[start + 2] = word[2];
}

static void emit_remnant(Pruner *p, const Block *block) {
    SPIRV_EMIT(&p->out, SpvOpLabel, block->label);
    if (block->remnant == REMNANT_MERGE) {
        spirv_emit(&p->out, SpvOpUnreachable, 0, NULL);
        return;
    }
    const Block *header = block->header;
    for (const uint32_t *word = header->first; spirv_op(word) == SpvOpPhi; word = spirv_next(word))
        SPIRV_EMIT(&p->out, SpvOpUndef, word[1], p->ids[word[2]].block);
    SPIRV_EMIT(&p->out, SpvOpBranch, header->label);
}

static void emit_block(Pruner *p, const Block *block) {
    SPIRV_EMIT(&p->out, SpvOpLabel, block->label);
    for (const uint32_t *word = block->first; word < block->last; word = spirv_next(word)) {
        if (spirv_op(word) == SpvOpPhi) {
            p->ids[word[2]].block =
                p->bound; // a value is not a label: the remnant finds the name there
            emit_phi(p, block, word, &p->bound);
        } else if (word != block->merge || block->merges) {
            spirv_copy(&p->out, word);
        }
    }
    if (!is_decided(block))
        spirv_copy(&p->out, block->last);
    else if (block->merges && spirv_op(block->last) == SpvOpSwitch)
        SPIRV_EMIT(&p->out, SpvOpSwitch, block->last[1], block->way);
    else
        SPIRV_EMIT(&p->out, SpvOpBranch, block->way);
}

static void emit_all(Pruner *p) {
    spirv_append(&p->out, p->words, SPIRV_HEADER_WORDS);
    for (const uint32_t *word = p->words + SPIRV_HEADER_WORDS; word < p->end;
         word = spirv_next(word)) {
        uint32_t op = spirv_op(word);
        if (op == SpvOpLabel) {
            const Block *block = block_of(p, word[1]);
            if (block->live)
                emit_block(p, block);
            else if (block->remnant != REMNANT_NONE)
                emit_remnant(p, block);
            word = block->last;
        } else if ((op != SpvOpDecorate && op != SpvOpName) || !p->ids[word[1]].gone) {
            spirv_copy(&p->out, word);
        }
    }
    p->out.words[SPIRV_BOUND] = p->bound;
}

uint32_t *module_prune(const uint32_t *words, size_t *bytes, int n_constants,
                       const uint32_t *constants) {
    size_t count = *bytes / sizeof *words;
    Pruner p = {.words = words, .end = words + count, .bound = words[SPIRV_BOUND]};
    p.ids = memory_allocate_zeroed(p.bound, sizeof *p.ids);
    for (uint32_t i = 0; i < p.bound; i++) p.ids[i].knowledge = VARIES;
    bool entry = false, declarations = true;
    for (const uint32_t *word = p.words + SPIRV_HEADER_WORDS; word < p.end;) {
        if (spirv_op(word) == SpvOpFunction) entry = true, declarations = false;
        if (spirv_op(word) == SpvOpLabel) {
            word = read_block(&p, word);
            p.blocks.items[p.blocks.count - 1].live = entry;
            entry = false;
            continue;
        }
        if (declarations) read_declaration(&p, word, n_constants, constants);
        word = spirv_next(word);
    }
    keep_continuations(&p);
    follow_all(&p);
    plan(&p);
    p.out.words = memory_allocate((2 * count + SPIRV_HEADER_WORDS) * sizeof *p.out.words);
    emit_all(&p);
    *bytes = p.out.count * sizeof *p.out.words;
    VECTOR_FREE(&p.blocks);
    free(p.ids);
    return p.out.words;
}
