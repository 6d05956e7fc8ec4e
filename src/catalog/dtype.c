// Names and sizes of element types.
#include "catalog/dtype.h"

#include <string.h>

enum { UNITS, SINGLE, HOST };
const DTypeInfo dtype_info[DTYPE_COUNT] = {
#define DTYPE(code, name, kind, block, bytes, short_name, gguf, units)                             \
    {name, short_name, DTYPE_KIND_##kind, block, bytes, gguf, units == HOST},
#include "catalog/dtypes.def"
#undef DTYPE
};

static bool matches(const char *word, const char *name, size_t length) {
    return strlen(word) == length && length > 0 && memcmp(word, name, length) == 0;
}

bool dtype_find(const char *name, size_t length, DType *out) {
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (matches(dtype_info[i].name, name, length) ||
            matches(dtype_info[i].short_name, name, length)) {
            *out = (DType)i;
            return true;
        }
    return false;
}

// bool < uint8 < int16 < int32 < int64 with int8 < int16; bfloat16 next to float16 gives float32.
#define B DTYPE_BOOL
#define U8 DTYPE_UINT8
#define I8 DTYPE_INT8
#define I16 DTYPE_INT16
#define I32 DTYPE_INT32
#define I64 DTYPE_INT64
#define F16 DTYPE_FLOAT16
#define BF DTYPE_BFLOAT16
#define F32 DTYPE_FLOAT32
#define F64 DTYPE_FLOAT64
#define PLAIN_COUNT 10 // the quantised types follow
static const uint8_t promotion[PLAIN_COUNT][PLAIN_COUNT] = {
    [B] = {B, U8, I8, I16, I32, I64, F16, BF, F32, F64},
    [U8] = {U8, U8, I16, I16, I32, I64, F32, F32, F32, F64},
    [I8] = {I8, I16, I8, I16, I32, I64, F32, F32, F32, F64},
    [I16] = {I16, I16, I16, I16, I32, I64, F32, F32, F32, F64},
    [I32] = {I32, I32, I32, I32, I32, I64, F32, F32, F32, F64},
    [I64] = {I64, I64, I64, I64, I64, I64, F32, F32, F32, F64},
    [F16] = {F16, F32, F32, F32, F32, F32, F16, F32, F32, F64},
    [BF] = {BF, F32, F32, F32, F32, F32, F32, BF, F32, F64},
    [F32] = {F32, F32, F32, F32, F32, F32, F32, F32, F32, F64},
    [F64] = {F64, F64, F64, F64, F64, F64, F64, F64, F64, F64},
};
_Static_assert(DTYPE_BOOL == 0 && DTYPE_UINT8 == 1 && DTYPE_INT8 == 2 && DTYPE_INT16 == 3 &&
                   DTYPE_INT32 == 4 && DTYPE_INT64 == 5 && DTYPE_FLOAT16 == 6 &&
                   DTYPE_BFLOAT16 == 7 && DTYPE_FLOAT32 == 8 && DTYPE_FLOAT64 == PLAIN_COUNT - 1,
               "the columns of the promotion table are in the order of dtypes.def");

DType dtype_promote(DType x, DType y) {
    // Quantised weights take part as the float32 numbers they stand for.
    if (x >= PLAIN_COUNT) x = F32;
    if (y >= PLAIN_COUNT) y = F32;
    return (DType)promotion[x][y];
}

DType dtype_floating(DType dtype) {
    return dtype_is_float(dtype) ? dtype : DTYPE_FLOAT32;
}

void dtype_promotion_add(DTypePromotion *operands, DTypeTier tier, DType dtype) {
    if (tier == DTYPE_TIER_NUMBER && dtype == DTYPE_FLOAT64) dtype = DTYPE_FLOAT32;
    DType *known = &operands->tiers[tier];
    *known = *known == DTYPE_COUNT ? dtype : dtype_promote(*known, dtype);
}

// An operand of the kind of `weak` next to those of dtype `strong`: widens to its kind only.
static DType widen_kind(DType strong, DType weak) {
    DTypeKind kind = dtype_kind(weak);
    if (dtype_kind(strong) >= kind) return strong;
    return kind == DTYPE_KIND_FLOAT ? DTYPE_FLOAT32 : DTYPE_INT64;
}

DType dtype_promotion_result(const DTypePromotion *operands) {
    DType result = DTYPE_COUNT;
    for (int tier = 0; tier < DTYPE_TIER_COUNT; tier++) {
        DType dtype = operands->tiers[tier];
        if (dtype == DTYPE_COUNT) continue;
        result = result == DTYPE_COUNT ? dtype : widen_kind(result, dtype);
    }
    return result == DTYPE_COUNT ? DTYPE_FLOAT32 : result;
}

DType dtype_of_map(MapRule rule, DType promoted) {
    switch (rule) {
    case MAP_RULE_ARITHMETIC: return promoted == DTYPE_BOOL ? DTYPE_INT64 : promoted;
    case MAP_RULE_FLOAT:
    case MAP_RULE_DIVIDE: return dtype_floating(promoted);
    case MAP_RULE_COMPARE:
    case MAP_RULE_APPROXIMATE:
    case MAP_RULE_LOGICAL: return DTYPE_BOOL;
    case MAP_RULE_INTEGER: return dtype_is_float(promoted) ? DTYPE_COUNT : promoted;
    case MAP_RULE_KEEP:
    case MAP_RULE_WHERE: break;
    }
    return promoted;
}
