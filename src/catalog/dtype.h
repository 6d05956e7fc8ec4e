// Element types of tensors: names and sizes, projected from dtypes.def.
#ifndef CATALOG_DTYPE_H
#define CATALOG_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum DType {
#define DTYPE(code, name, kind, block, bytes, short_name, ...) DTYPE_##code,
#include "catalog/dtypes.def"
#undef DTYPE
    DTYPE_COUNT
} DType;

typedef enum DTypeKind {
    DTYPE_KIND_BOOL,
    DTYPE_KIND_INT,
    DTYPE_KIND_FLOAT,
    DTYPE_KIND_QUANT
} DTypeKind;

typedef struct DTypeInfo {
    const char *name, *short_name;
    DTypeKind kind;
    int block_elements, block_bytes;
    int gguf;       // the number that files of that format have for it; -1: none
    bool host_only; // devices other than the CPU cannot read it
} DTypeInfo;

extern const DTypeInfo dtype_info[DTYPE_COUNT];

static inline const char *dtype_name(DType dtype) {
    return dtype_info[dtype].name;
}
static inline DTypeKind dtype_kind(DType dtype) {
    return dtype_info[dtype].kind;
}
static inline bool dtype_is_float(DType dtype) {
    return dtype_kind(dtype) == DTYPE_KIND_FLOAT;
}
static inline bool dtype_is_quant(DType dtype) {
    return dtype_kind(dtype) == DTYPE_KIND_QUANT;
}
// Bytes of one element; 0 for block-quantised types.
static inline size_t dtype_size(DType dtype) {
    return dtype_info[dtype].block_elements == 1 ? (size_t)dtype_info[dtype].block_bytes : 0;
}
// By full name or short name ("float32", "f32"); false when there is none.
bool dtype_find(const char *name, size_t length, DType *out);
// The promoted dtype of two tensors of rank > 0.
DType dtype_promote(DType x, DType y);
// Operands promote in three tiers: tensors of rank > 0, then rank-0 tensors, then plain numbers.
// The first tier that is present sets the dtype, the others only its kind.
typedef enum DTypeTier {
    DTYPE_TIER_TENSOR,
    DTYPE_TIER_RANK_0,
    DTYPE_TIER_NUMBER,
    DTYPE_TIER_COUNT
} DTypeTier;
typedef struct DTypePromotion {
    DType tiers[DTYPE_TIER_COUNT]; // DTYPE_COUNT: no operand
} DTypePromotion;
#define DTYPE_PROMOTION_NONE                                                                       \
    {                                                                                              \
        { DTYPE_COUNT, DTYPE_COUNT, DTYPE_COUNT }                                                  \
    }
void dtype_promotion_add(DTypePromotion *promotion, DTypeTier tier, DType dtype);
DType dtype_promotion_result(const DTypePromotion *promotion); // of no operands FLOAT32

// Dtypes of a map. Promotion is that of the language's section 3; the words say what is special.
typedef enum MapRule {
    MAP_RULE_ARITHMETIC,  // the promoted dtype; bools count as int64
    MAP_RULE_KEEP,        // the promoted dtype, bool stays bool
    MAP_RULE_FLOAT,       // ints and bools give float32
    MAP_RULE_DIVIDE,      // like FLOAT on tensors; two plain ints divide as ints
    MAP_RULE_COMPARE,     // bool, computed in the promoted dtype
    MAP_RULE_APPROXIMATE, // bool, computed as a float
    MAP_RULE_LOGICAL,     // bool, of whether each operand is 0
    MAP_RULE_INTEGER,     // the promoted dtype; floats are an error
    MAP_RULE_WHERE,       // the promoted dtype of all operands but the first, the condition
} MapRule;
// The dtype of a map's result, from what its operands promote to; DTYPE_COUNT where the rule
// refuses that.
DType dtype_of_map(MapRule rule, DType promoted);
// The floating dtype an operation on `dtype` computes in and returns: itself, or float32 for ints.
DType dtype_floating(DType dtype);

#endif
