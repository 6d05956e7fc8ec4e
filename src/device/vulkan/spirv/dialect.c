// Modules with cooperative matrices, said in the words of SPV_KHR_cooperative_matrix. The compilers
// that build this know only the older SPV_NV_cooperative_matrix, which differs in numbers, in the
// order of operands, and in that the newer one tells the three factors of a * b + c apart by type.
// Here they are told apart by their dims: the sums are float32 of M x N, and a has M rows, b N
// columns, each a specialization constant of its own. Opcodes are those of the registry.
#include "device/vulkan/core.h"

enum {
    HEADER_WORDS = 5,
    BOUND_WORD = 3,
    OP_EXTENSION = 10,
    OP_CAPABILITY = 17,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_CONSTANT_TRUE = 41,
    OP_CONSTANT = 43,
    NV_TYPE = 5358,
    NV_LOAD = 5359,
    NV_STORE = 5360,
    NV_MULTIPLY_ADD = 5361,
    KHR_TYPE = 4456,
    KHR_LOAD = 4457,
    KHR_STORE = 4458,
    KHR_MULTIPLY_ADD = 4459,
    CAPABILITY_NV = 5357,
    CAPABILITY_KHR = 6022,
    CAPABILITY_BFLOAT = 5116,
    CAPABILITY_BFLOAT_MATRIX = 5118,
    ENCODING_BFLOAT = 0,
    ADDED_WORDS = 64, // at most, beyond one for each type
};
static const char nv_extension[] = "SPV_NV_cooperative_matrix";

typedef struct Dialect {
    const uint32_t *in;
    uint32_t *out;
    size_t count, at;            // words in, words out
    bool bfloat;                 // float16 becomes bfloat16
    uint32_t whole, single, yes; // ids: uint, float, true
    uint32_t rows, columns;      // of the sums
    uint32_t numbers;            // the first of three ids: the constants 0, 1 and 2
} Dialect;

static void emit(Dialect *d, uint32_t op, int n, const uint32_t *operands) {
    d->out[d->at++] = op | (uint32_t)(n + 1) << 16;
    for (int i = 0; i < n; i++) d->out[d->at++] = operands[i];
}
#define EMIT(d, op, ...)                                                                           \
    emit(d, op, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

static void emit_extension(Dialect *d, const char *name) {
    uint32_t words[16] = {0};
    size_t length = strlen(name);
    ASSERT(length < sizeof words);
    memcpy(words, name, length);
    emit(d, OP_EXTENSION, (int)(length / 4 + 1), words);
}

// What the module calls the things that the other words need.
static void find_names(Dialect *d) {
    for (size_t i = HEADER_WORDS; i < d->count; i += d->in[i] >> 16) {
        const uint32_t *word = d->in + i;
        uint32_t op = *word & 0xFFFF;
        if (op == OP_TYPE_INT && word[2] == 32 && word[3] == 0) d->whole = word[1];
        if (op == OP_TYPE_FLOAT && word[2] == 32) d->single = word[1];
        if (op == OP_CONSTANT_TRUE) d->yes = word[2];
        if (op == NV_TYPE && word[2] == d->single) {
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
    uint32_t op = *word & 0xFFFF, length = *word >> 16;
    if (op == OP_CAPABILITY && word[1] == CAPABILITY_NV) {
        EMIT(d, OP_CAPABILITY, CAPABILITY_KHR);
        if (d->bfloat) EMIT(d, OP_CAPABILITY, CAPABILITY_BFLOAT);
        if (d->bfloat) EMIT(d, OP_CAPABILITY, CAPABILITY_BFLOAT_MATRIX);
    } else if (op == OP_EXTENSION && strcmp((const char *)(word + 1), nv_extension) == 0) {
        emit_extension(d, "SPV_KHR_cooperative_matrix");
        if (d->bfloat) emit_extension(d, "SPV_KHR_bfloat16");
    } else if (op == OP_TYPE_INT && word[1] == d->whole) {
        EMIT(d, OP_TYPE_INT, word[1], word[2], word[3]);
        for (uint32_t n = 0; n < 3; n++) EMIT(d, OP_CONSTANT, d->whole, d->numbers + n, n);
    } else if (op == OP_TYPE_FLOAT && word[2] == 16 && d->bfloat) {
        EMIT(d, OP_TYPE_FLOAT, word[1], word[2], ENCODING_BFLOAT);
    } else if (op == NV_TYPE) {
        EMIT(d, KHR_TYPE, word[1], word[2], word[3], word[4], word[5], use_of(d, word));
    } else if (op == NV_LOAD) {
        uint32_t operands[8] = {word[1], word[2], word[3], layout_of(d, word[5]), word[4]};
        for (uint32_t i = 6; i < length; i++) operands[i - 1] = word[i];
        emit(d, KHR_LOAD, (int)length - 1, operands);
    } else if (op == NV_STORE) {
        uint32_t operands[8] = {word[1], word[2], layout_of(d, word[4]), word[3]};
        for (uint32_t i = 5; i < length; i++) operands[i - 1] = word[i];
        emit(d, KHR_STORE, (int)length - 1, operands);
    } else if (op == NV_MULTIPLY_ADD) {
        emit(d, KHR_MULTIPLY_ADD, (int)length - 1, word + 1);
    } else {
        return false;
    }
    return true;
}

uint32_t *dialect_translate(const VulkanModule *module, bool bfloat, size_t *bytes) {
    Dialect d = {.in = module->data, .count = module->bytes / 4, .bfloat = bfloat};
    find_names(&d);
    d.numbers = d.in[BOUND_WORD];
    d.out = memory_allocate((d.count + d.count / 4 + ADDED_WORDS) * sizeof *d.out);
    memcpy(d.out, d.in, HEADER_WORDS * sizeof *d.out);
    d.out[BOUND_WORD] += 3;
    d.at = HEADER_WORDS;
    for (size_t i = HEADER_WORDS; i < d.count; i += d.in[i] >> 16) {
        if (translate(&d, d.in + i)) continue;
        memcpy(d.out + d.at, d.in + i, (d.in[i] >> 16) * sizeof *d.out);
        d.at += d.in[i] >> 16;
    }
    *bytes = d.at * sizeof *d.out;
    return d.out;
}
