// Modules without what their constants never reach: what is folded, what stays, and that what comes
// out is a module still, for every shader there is.
#include "device/reduction.h"
#include "device/vulkan/spirv/differences.h"
#include "device/vulkan/spirv/fold.h"
#include "device/vulkan/spirv/spirv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

// --- numbers -------------------------------------------------------------------------------------

static void test_numbers(void **state) {
    (void)state;
    static const struct {
        uint32_t op;
        int operand_bits, bits;
        uint64_t a, b, result;
        bool unknown;
    } rows[] = {
        {SpvOpUConvert, 32, 64, 0xFFFFFFFF, 0, 0xFFFFFFFF, false},
        {SpvOpUConvert, 32, 8, 0x1234, 0, 0x34, false},
        {SpvOpSConvert, 32, 64, 0xFFFFFFFE, 0, UINT64_MAX - 1, false},
        {SpvOpBitcast, 32, 32, 7, 0, 7, false},
        {SpvOpSNegate, 32, 32, 1, 0, 0xFFFFFFFF, false},
        {SpvOpIAdd, 32, 32, 0xFFFFFFFF, 2, 1, false},
        {SpvOpISub, 64, 64, 1, 2, UINT64_MAX, false},
        {SpvOpIMul, 32, 32, 0x10000, 0x10000, 0, false},
        {SpvOpUDiv, 32, 32, 0xFFFFFFFE, 2, 0x7FFFFFFF, false},
        {SpvOpUDiv, 32, 32, 1, 0, 0, true},
        {SpvOpSDiv, 32, 32, 0xFFFFFFF9, 2, 0xFFFFFFFD, false},
        {SpvOpSDiv, 32, 32, 4, 0, 0, true},
        {SpvOpUMod, 32, 32, 7, 4, 3, false},
        {SpvOpUMod, 32, 32, 7, 0, 0, true},
        {SpvOpLogicalEqual, 1, 1, 1, 1, 1, false},
        {SpvOpLogicalNotEqual, 1, 1, 1, 0, 1, false},
        {SpvOpLogicalOr, 1, 1, 0, 1, 1, false},
        {SpvOpLogicalAnd, 1, 1, 0, 1, 0, false},
        {SpvOpLogicalNot, 1, 1, 1, 1, 0, false},
        {SpvOpIEqual, 32, 1, 3, 3, 1, false},
        {SpvOpINotEqual, 32, 1, 3, 3, 0, false},
        {SpvOpUGreaterThan, 32, 1, 0xFFFFFFFF, 1, 1, false},
        {SpvOpSGreaterThan, 32, 1, 0xFFFFFFFF, 1, 0, false},
        {SpvOpUGreaterThanEqual, 32, 1, 1, 1, 1, false},
        {SpvOpSGreaterThanEqual, 8, 1, 0x80, 0x7F, 0, false},
        {SpvOpULessThan, 32, 1, 1, 0xFFFFFFFF, 1, false},
        {SpvOpSLessThan, 32, 1, 1, 0xFFFFFFFF, 0, false},
        {SpvOpULessThanEqual, 32, 1, 2, 1, 0, false},
        {SpvOpSLessThanEqual, 64, 1, UINT64_MAX, 0, 1, false},
        {SpvOpShiftRightLogical, 32, 32, 0x80000000, 31, 1, false},
        {SpvOpShiftRightLogical, 64, 64, 1, 64, 0, true},
        {SpvOpShiftRightArithmetic, 32, 32, 0x80000000, 31, 0xFFFFFFFF, false},
        {SpvOpShiftLeftLogical, 32, 32, 3, 31, 0x80000000, false},
        {SpvOpBitwiseOr, 32, 32, 5, 2, 7, false},
        {SpvOpBitwiseXor, 32, 32, 5, 1, 4, false},
        {SpvOpBitwiseAnd, 32, 32, 5, 4, 4, false},
        {SpvOpNot, 32, 32, 1, 1, 0xFFFFFFFE, false},
        {SpvOpSelect, 32, 32, 1, 1, 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Number operands[2] = {{rows[i].a, rows[i].operand_bits}, {rows[i].b, rows[i].operand_bits}};
        uint64_t result = 0;
        assert_int_equal(fold_numbers(rows[i].op, rows[i].bits, operands, &result),
                         !rows[i].unknown);
        if (result != rows[i].result) print_error("row %zu\n", i);
        assert_true(result == rows[i].result);
    }
}

// --- modules -------------------------------------------------------------------------------------

typedef struct Module {
    const uint32_t *words;
    size_t count;
} Module;

typedef struct Edge {
    uint32_t from, to;
} Edge;

// Where each block goes on to.
static size_t list_edges(Module module, Edge *edges) {
    size_t n = 0;
    uint32_t label = 0;
    for (size_t i = 5; i < module.count; i += module.words[i] >> 16) {
        const uint32_t *word = module.words + i;
        uint32_t op = *word & 0xFFFF, length = *word >> 16;
        if (op == SpvOpLabel) label = word[1];
        if (op == SpvOpBranch) edges[n++] = (Edge){label, word[1]};
        if (op == SpvOpBranchConditional)
            for (uint32_t k = 2; k < 4; k++) edges[n++] = (Edge){label, word[k]};
        if (op == SpvOpSwitch)
            for (uint32_t k = 2; k < length; k += 2) edges[n++] = (Edge){label, word[k]};
    }
    return n;
}

static int edges_to(const Edge *edges, size_t n, Edge wanted) {
    int found = 0;
    for (size_t i = 0; i < n; i++)
        found += edges[i].to == wanted.to && (wanted.from == 0 || edges[i].from == wanted.from);
    return found;
}

static void check_phi(const uint32_t *word, uint32_t label, const Edge *edges, size_t n) {
    int pairs = (int)((*word >> 16) - 3) / 2;
    for (int k = 0; k < pairs; k++)
        assert_true(edges_to(edges, n, (Edge){word[4 + 2 * k], label}) >= 1);
    int ways = 0; // two cases of a switch are one way
    for (size_t i = 0; i < n; i++) {
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again |= edges[j].from == edges[i].from && edges[j].to == edges[i].to;
        ways += edges[i].to == label && !again;
    }
    assert_int_equal(pairs, ways);
}

// Labels that are named exist; phis list the blocks that lead to theirs; what is decorated is made.
static void check_module(Module module) {
    uint32_t bound = module.words[3];
    bool *labels = calloc(bound, sizeof *labels), *words_used = calloc(bound, sizeof *words_used);
    Edge *edges = calloc(module.count, sizeof *edges);
    size_t n = list_edges(module, edges), i = 5;
    for (; i < module.count; i += module.words[i] >> 16) {
        const uint32_t *word = module.words + i;
        uint32_t op = *word & 0xFFFF, length = *word >> 16;
        assert_true(length > 0 && i + length <= module.count);
        if (op == SpvOpLabel) {
            assert_true(word[1] < bound && !labels[word[1]]);
            labels[word[1]] = true;
        }
        if (op == SpvOpDecorate || op == SpvOpName) continue;
        for (uint32_t k = 1; k < length && k < 3; k++)
            if (word[k] < bound) words_used[word[k]] = true;
    }
    assert_int_equal(i, module.count);
    for (size_t e = 0; e < n; e++) assert_true(labels[edges[e].to]);
    uint32_t label = 0;
    for (i = 5; i < module.count; i += module.words[i] >> 16) {
        const uint32_t *word = module.words + i;
        uint32_t op = *word & 0xFFFF;
        if (op == SpvOpLabel) label = word[1];
        if (op == SpvOpSelectionMerge || op == SpvOpLoopMerge) assert_true(labels[word[1]]);
        if (op == SpvOpLoopMerge) assert_true(labels[word[2]]);
        if (op == SpvOpDecorate || op == SpvOpName) assert_true(words_used[word[1]]);
        if (op == SpvOpPhi) check_phi(word, label, edges, n);
    }
    free(labels);
    free(words_used);
    free(edges);
}

static int count_op(Module module, uint32_t op) {
    int count = 0;
    for (size_t i = 5; i < module.count; i += module.words[i] >> 16)
        count += (module.words[i] & 0xFFFF) == op;
    return count;
}

static Module prune(Module module, int n_constants, const uint32_t *constants) {
    size_t bytes = module.count * 4;
    const uint32_t *words = module_prune(module.words, &bytes, n_constants, constants);
    return (Module){words, bytes / 4};
}

static void test_every_shader(void **state) {
    (void)state;
    uint32_t random = 1;
    for (int s = 0; s < VULKAN_SHADER_COUNT; s++) {
        const VulkanModule *shader = vulkan_module((VulkanShader)s);
        if (module_is_imported(shader)) continue;
        Module module = {shader->data, shader->bytes / 4};
        for (int round = 0; round < 4; round++) {
            uint32_t constants[VULKAN_CONSTANTS_MAX];
            for (int i = 0; i < VULKAN_CONSTANTS_MAX; i++) {
                random = random * 1664525 + 1013904223;
                constants[i] = round == 0 ? 0 : random >> (round % 2 ? 29 : 12);
            }
            Module pruned = prune(module, VULKAN_CONSTANTS_MAX, constants);
            assert_true(pruned.count <= module.count + 16);
            check_module(pruned);
            free((void *)pruned.words);
        }
    }
}

static void test_differences(void **state) {
    (void)state;
    enum { FIRST = SPIRV_HEADER_WORDS + 1 };
    static const uint32_t header[SPIRV_HEADER_WORDS] = {SpvMagicNumber, 0, 0, 9, 0};
    uint32_t words[SPIRV_HEADER_WORDS + 11] = {0}, differences[SPIRV_HEADER_WORDS + 11];
    SpirvWriter writer = {words, 0};
    spirv_append(&writer, header, SPIRV_HEADER_WORDS);
    SPIRV_EMIT(&writer, SpvOpTypeInt, 5, 32);
    SPIRV_EMIT(&writer, SpvOpTypeFloat, 4);
    SPIRV_EMIT(&writer, SpvOpTypeInt, 3, 64, 1);
    SPIRV_EMIT(&writer, SpvOpTypeFloat, 7);
    spirv_to_differences(differences, words, writer.count);
    assert_memory_equal(differences, header, sizeof header);
    assert_int_equal(differences[FIRST], 5);
    assert_int_equal(differences[FIRST + 5], UINT32_MAX - 1); // 3 after 5
    assert_int_equal(differences[FIRST + 6], 32);
    assert_int_equal(differences[FIRST + 7], 1); // nothing is at its place before
    assert_int_equal(differences[FIRST + 9], 3); // 7 after 4
    spirv_from_differences(differences, writer.count);
    assert_memory_equal(differences, words, writer.count * sizeof *words);
}

static void test_one_dtype_of_many(void **state) {
    (void)state;
    const VulkanConstants sum_of_rows = {.reduce = {.RANKS = 1 << 3 | 1,
                                                    .FIRST = FOLD_NONE,
                                                    .SECOND = FOLD_SUM,
                                                    .DTYPES = DTYPE_FLOAT32 | DTYPE_FLOAT32 << 4,
                                                    .WIDTH = 1,
                                                    .EACH = 1}};
    const VulkanModule *shader = vulkan_module(SHADER_REDUCE_F32);
    Module module = {shader->data, shader->bytes / 4};
    Module pruned = prune(module, VULKAN_CONSTANT_COUNT(reduce), sum_of_rows.words);
    assert_true(pruned.count < module.count / 8);
    free((void *)pruned.words);
}

// --- control flow --------------------------------------------------------------------------------

#define WORDS(op, n, ...) (op) | (uint32_t)(n) << 16, __VA_ARGS__
#define WORD(op) (op) | 1u << 16
enum { VOID = 1, FUNCTION, BOOL, UINT, CHOICE, ZERO, ONE, MAIN, ENTRY, IDS = 30 };

// A function of these blocks; CHOICE is specialization constant 0.
static Module declare(const uint32_t *body, size_t count) {
    static const uint32_t start[] = {
        0x07230203,
        0x00010500,
        0,
        IDS,
        0,
        WORDS(SpvOpDecorate, 4, CHOICE, 1, 0),
        WORDS(SpvOpTypeVoid, 2, VOID),
        WORDS(SpvOpTypeFunction, 3, FUNCTION, VOID),
        WORDS(SpvOpTypeBool, 2, BOOL),
        WORDS(SpvOpTypeInt, 4, UINT, 32, 0),
        WORDS(SpvOpSpecConstant, 4, UINT, CHOICE, 0),
        WORDS(SpvOpConstant, 4, UINT, ZERO, 0),
        WORDS(SpvOpConstant, 4, UINT, ONE, 1),
        WORDS(SpvOpFunction, 5, VOID, MAIN, 0, FUNCTION),
        WORDS(SpvOpLabel, 2, ENTRY),
    };
    size_t head = sizeof start / sizeof *start;
    uint32_t *words = malloc((head + count + 1) * sizeof *words);
    memcpy(words, start, sizeof start);
    memcpy(words + head, body, count * sizeof *body);
    words[head + count] = WORD(SpvOpFunctionEnd);
    return (Module){words, head + count + 1};
}
#define DECLARE(body) declare(body, sizeof(body) / sizeof *(body))

static Module prune_choice(Module module, uint32_t choice) {
    Module pruned = prune(module, 1, &choice);
    check_module(pruned);
    return pruned;
}

static void test_branches(void **state) {
    (void)state;
    enum { THEN = 10, ELSE, MERGE, CONDITION, A, B, PHI };
    static const uint32_t body[] = {
        WORDS(SpvOpIEqual, 5, BOOL, CONDITION, CHOICE, ONE),
        WORDS(SpvOpSelectionMerge, 3, MERGE, 0),
        WORDS(SpvOpBranchConditional, 4, CONDITION, THEN, ELSE),
        WORDS(SpvOpLabel, 2, THEN),
        WORDS(SpvOpIAdd, 5, UINT, A, CHOICE, ONE),
        WORDS(SpvOpBranch, 2, MERGE),
        WORDS(SpvOpLabel, 2, ELSE),
        WORDS(SpvOpISub, 5, UINT, B, CHOICE, ONE),
        WORDS(SpvOpBranch, 2, MERGE),
        WORDS(SpvOpLabel, 2, MERGE),
        WORDS(SpvOpPhi, 7, UINT, PHI, A, THEN, B, ELSE),
        WORD(SpvOpReturn),
    };
    Module module = DECLARE(body);
    for (uint32_t choice = 0; choice < 2; choice++) {
        Module pruned = prune_choice(module, choice);
        assert_int_equal(count_op(pruned, SpvOpIAdd), choice);
        assert_int_equal(count_op(pruned, SpvOpISub), 1 - choice);
        assert_int_equal(count_op(pruned, SpvOpSelectionMerge), 0);
        assert_int_equal(count_op(pruned, SpvOpBranchConditional), 0);
        free((void *)pruned.words);
    }
    free((void *)module.words);
}

// A switch that is left from within a selection stays what is left; one that nothing leaves goes.
static void test_switches(void **state) {
    (void)state;
    enum { CASE = 10, OTHER, MERGE, INNER, INNER_MERGE, CONDITION, DATA };
    static const uint32_t body[] = {
        WORDS(1, 3, BOOL, DATA), // undefined: never known
        WORDS(SpvOpSelectionMerge, 3, MERGE, 0),
        WORDS(SpvOpSwitch, 5, CHOICE, OTHER, 1, CASE),
        WORDS(SpvOpLabel, 2, CASE),
        WORDS(SpvOpSelectionMerge, 3, INNER_MERGE, 0),
        WORDS(SpvOpBranchConditional, 4, DATA, INNER, INNER_MERGE),
        WORDS(SpvOpLabel, 2, INNER),
        WORDS(SpvOpBranch, 2, MERGE),
        WORDS(SpvOpLabel, 2, INNER_MERGE),
        WORDS(SpvOpBranch, 2, MERGE),
        WORDS(SpvOpLabel, 2, OTHER),
        WORDS(SpvOpBranch, 2, MERGE),
        WORDS(SpvOpLabel, 2, MERGE),
        WORD(SpvOpReturn),
    };
    Module module = DECLARE(body);
    Module broken = prune_choice(module, 1), straight = prune_choice(module, 7);
    assert_int_equal(count_op(broken, SpvOpSwitch), 1);
    assert_int_equal(count_op(broken, SpvOpSelectionMerge), 2);
    assert_int_equal(count_op(broken, SpvOpLabel), 5);
    assert_int_equal(count_op(straight, SpvOpSwitch), 0);
    assert_int_equal(count_op(straight, SpvOpSelectionMerge), 0);
    assert_int_equal(count_op(straight, SpvOpLabel), 3);
    free((void *)broken.words);
    free((void *)straight.words);
    free((void *)module.words);
}

// A loop that leaves in its first turn keeps its shape; its way back comes from nowhere.
static void test_loops(void **state) {
    (void)state;
    enum { HEADER = 10, BODY, CONTINUE, MERGE, CONDITION, PHI, NEXT };
    static const uint32_t body[] = {
        WORDS(SpvOpBranch, 2, HEADER),
        WORDS(SpvOpLabel, 2, HEADER),
        WORDS(SpvOpPhi, 7, UINT, PHI, ZERO, ENTRY, NEXT, CONTINUE),
        WORDS(SpvOpLoopMerge, 4, MERGE, CONTINUE, 0),
        WORDS(SpvOpBranch, 2, BODY),
        WORDS(SpvOpLabel, 2, BODY),
        WORDS(SpvOpIEqual, 5, BOOL, CONDITION, CHOICE, ONE),
        WORDS(SpvOpBranchConditional, 4, CONDITION, MERGE, CONTINUE),
        WORDS(SpvOpLabel, 2, CONTINUE),
        WORDS(SpvOpIAdd, 5, UINT, NEXT, PHI, ONE),
        WORDS(SpvOpBranch, 2, HEADER),
        WORDS(SpvOpLabel, 2, MERGE),
        WORD(SpvOpReturn),
    };
    Module module = DECLARE(body);
    Module once = prune_choice(module, 1), ever = prune_choice(module, 0);
    assert_int_equal(count_op(once, SpvOpLoopMerge), 1);
    assert_int_equal(count_op(once, SpvOpIAdd), 0);
    assert_int_equal(count_op(once, 1), 1); // an undefined value, with a name of its own
    assert_int_equal(once.words[3], IDS + 1);
    assert_int_equal(count_op(ever, SpvOpIAdd), 1);
    assert_int_equal(count_op(ever, SpvOpUnreachable), 1); // where the loop would end
    free((void *)once.words);
    free((void *)ever.words);
    free((void *)module.words);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_every_shader),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_one_dtype_of_many),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
