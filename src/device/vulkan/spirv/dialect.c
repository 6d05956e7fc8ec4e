// Modules with cooperative matrices, said in the words of SPV_KHR_cooperative_matrix. The compilers
// that build this know only the older SPV_NV_cooperative_matrix, which differs in numbers, in the
// order of operands, and in that the newer one tells the three factors of a * b + c apart by type.
// Here they are told apart by their dims: the sums are float32 of M x N, and a has M rows, b N
// columns, each a specialization constant of its own.
#include "device/vulkan/core.h"
#include "device/vulkan/spirv/module.h"
#include "device/vulkan/spirv/spirv.h"

enum { ADDED_WORDS = 64 }; // at most, beyond one for each type
static const char nv_extension[] = "SPV_NV_cooperative_matrix";

typedef struct Dialect {
    const uint32_t *in, *end;
    SpirvWriter out;
    bool bfloat;                 // float16 becomes bfloat16
    uint32_t whole, single, yes; // ids: uint, float, true
    uint32_t rows, columns;      // of the sums
    uint32_t numbers;            // the first of three ids: the constants 0, 1 and 2
} Dialect;

static void emit_extension(Dialect *d, const char *name) {
    uint32_t words[16] = {0};
    size_t length = strlen(name);
    ASSERT(length < sizeof words);
    memcpy(words, name, length);
    spirv_emit(&d->out, SpvOpExtension, length / 4 + 1, words);
}

// What the module calls the things that the other words need.
static void find_names(Dialect *d) {
    for (const uint32_t *word = d->in + SPIRV_HEADER_WORDS; word < d->end;
         word = spirv_next(word)) {
        uint32_t op = spirv_op(word);
        if (op == SpvOpTypeInt && word[2] == 32 && word[3] == 0) d->whole = word[1];
        if (op == SpvOpTypeFloat && word[2] == 32) d->single = word[1];
        if (op == SpvOpConstantTrue) d->yes = word[2];
        if (op == SpvOpTypeCooperativeMatrixNV && word[2] == d->single) {
            d->rows = word[4];
            d->columns = word[5];
        }
    }
    ASSERT(d->whole && d->single && d->rows && d->columns);
}

static uint32_t use_of(const Dialect *d, const uint32_t *type) {
    if (type[4] == d->rows && type[5] == d->columns) return d->numbers + 2;
    ASSERT(type[4] == d->rows || type[5] == d->columns);
    return type[4] == d->rows ? d->numbers : d->numbers + 1;
}

static uint32_t layout_of(const Dialect *d, uint32_t by_columns) {
    return d->yes && by_columns == d->yes ? d->numbers + 1 : d->numbers;
}

// True when the instruction was said in other words.
static bool translate(Dialect *d, const uint32_t *word) {
    uint32_t op = spirv_op(word), length = spirv_length(word);
    if (op == SpvOpCapability && word[1] == SpvCapabilityCooperativeMatrixNV) {
        SPIRV_EMIT(&d->out, SpvOpCapability, SPIRV_CAPABILITY_MATRIX);
        if (d->bfloat) SPIRV_EMIT(&d->out, SpvOpCapability, SPIRV_CAPABILITY_BFLOAT);
        if (d->bfloat) SPIRV_EMIT(&d->out, SpvOpCapability, SPIRV_CAPABILITY_BFLOAT_MATRIX);
    } else if (op == SpvOpExtension && strcmp((const char *)(word + 1), nv_extension) == 0) {
        emit_extension(d, "SPV_KHR_cooperative_matrix");
        if (d->bfloat) emit_extension(d, "SPV_KHR_bfloat16");
    } else if (op == SpvOpTypeInt && word[1] == d->whole) {
        SPIRV_EMIT(&d->out, SpvOpTypeInt, word[1], word[2], word[3]);
        for (uint32_t n = 0; n < 3; n++)
            SPIRV_EMIT(&d->out, SpvOpConstant, d->whole, d->numbers + n, n);
    } else if (op == SpvOpTypeFloat && word[2] == 16 && d->bfloat) {
        SPIRV_EMIT(&d->out, SpvOpTypeFloat, word[1], word[2], SPIRV_ENCODING_BFLOAT);
    } else if (op == SpvOpTypeCooperativeMatrixNV) {
        SPIRV_EMIT(&d->out, SPIRV_OP_TYPE_MATRIX, word[1], word[2], word[3], word[4], word[5],
                   use_of(d, word));
    } else if (op == SpvOpCooperativeMatrixLoadNV) {
        uint32_t operands[8] = {word[1], word[2], word[3], layout_of(d, word[5]), word[4]};
        for (uint32_t i = 6; i < length; i++) operands[i - 1] = word[i];
        spirv_emit(&d->out, SPIRV_OP_MATRIX_LOAD, length - 1, operands);
    } else if (op == SpvOpCooperativeMatrixStoreNV) {
        uint32_t operands[8] = {word[1], word[2], layout_of(d, word[4]), word[3]};
        for (uint32_t i = 5; i < length; i++) operands[i - 1] = word[i];
        spirv_emit(&d->out, SPIRV_OP_MATRIX_STORE, length - 1, operands);
    } else if (op == SpvOpCooperativeMatrixMulAddNV) {
        spirv_emit(&d->out, SPIRV_OP_MATRIX_MULTIPLY_ADD, length - 1, word + 1);
    } else {
        return false;
    }
    return true;
}

uint32_t *dialect_translate(const VulkanModule *module, bool bfloat, size_t *bytes) {
    size_t count = module->bytes / sizeof(uint32_t);
    const uint32_t *in = module->data;
    Dialect d = {.in = in, .end = in + count, .bfloat = bfloat};
    find_names(&d);
    d.numbers = in[SPIRV_BOUND];
    d.out.words = memory_allocate((count + count / 4 + ADDED_WORDS) * sizeof *in);
    spirv_append(&d.out, in, SPIRV_HEADER_WORDS);
    d.out.words[SPIRV_BOUND] += 3;
    for (const uint32_t *word = in + SPIRV_HEADER_WORDS; word < d.end; word = spirv_next(word))
        if (!translate(&d, word)) spirv_copy(&d.out, word);
    *bytes = d.out.count * sizeof *in;
    return d.out.words;
}
