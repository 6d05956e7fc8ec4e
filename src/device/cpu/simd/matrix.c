// Products of integers, and the table of what each dtype has, once per instruction set. Products
// with few rows are in thin_*.c, those of blocks in product.c.
#include "device/cpu/matrix.h"

#include "device/cpu/simd/thin.h"

// Tiles of up to four rows of a by two vectors of columns, whose sums stay in registers. Unsigned
// numbers wrap as the language's integers do.
#define INTEGER_PRODUCT(name, Element, Vector, width)                                              \
    SIMD_INLINE void name##_tile(const IntegerProduct *product, int64_t row, int rows,             \
                                 int64_t column) {                                                 \
        const Element *a = (const Element *)product->a + row * product->a_stride;                  \
        const Element *b = (const Element *)product->b + column;                                   \
        Element *out = (Element *)product->out + row * product->out_stride + column;               \
        Vector sums[4][2];                                                                         \
        for (int i = 0; i < rows; i++)                                                             \
            memcpy(sums[i], out + i * product->out_stride, sizeof sums[i]);                        \
        for (int64_t k = 0; k < product->k; k++) {                                                 \
            Vector numbers[2];                                                                     \
            memcpy(numbers, b + k * product->b_stride, sizeof numbers);                            \
            for (int i = 0; i < rows; i++) {                                                       \
                sums[i][0] += numbers[0] * a[i * product->a_stride + k];                           \
                sums[i][1] += numbers[1] * a[i * product->a_stride + k];                           \
            }                                                                                      \
        }                                                                                          \
        for (int i = 0; i < rows; i++)                                                             \
            memcpy(out + i * product->out_stride, sums[i], sizeof sums[i]);                        \
    }                                                                                              \
    static void name(const IntegerProduct *product) {                                              \
        for (int64_t column = 0; column < product->n; column += 2 * width) {                       \
            int64_t row = 0;                                                                       \
            for (; row + 4 <= product->m; row += 4) name##_tile(product, row, 4, column);          \
            for (; row < product->m; row++) name##_tile(product, row, 1, column);                  \
        }                                                                                          \
    }
INTEGER_PRODUCT(integer32_product, uint32_t, Words, LANES)
INTEGER_PRODUCT(integer64_product, uint64_t, Longs, DOUBLE_LANES)
_Static_assert(2 * LANES <= INTEGER_PADDING, "a tile fits into the padding");

#define KIND_BOOL(code)
#define KIND_INT(code)
#define KIND_FLOAT(code)                                                                           \
    .dot[DTYPE_##code] = ISA(dot_##code), .strip[DTYPE_##code] = ISA(strip_##code),
#define KIND_QUANT(code)                                                                           \
    .dot[DTYPE_##code] = ISA(dot_##code), .dequantize[DTYPE_##code] = ISA(dequantize_##code),
const MatrixSimd ISA(matrix_simd) = {
#define DTYPE(code, name, kind, ...) KIND_##kind(code)
#include "catalog/dtypes.def"
#undef DTYPE
    .integer32 = integer32_product,
    .integer64 = integer64_product,
};
