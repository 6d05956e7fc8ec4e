// What the ways to make a product share: its operands, its batches, and how they become a dispatch.
#ifndef VULKAN_KERNELS_MATMUL_H
#define VULKAN_KERNELS_MATMUL_H

#include "device/vulkan/kernels/kernels.h"

typedef struct Product {
    const KernelCall *call;
    const TensorView *a, *b, *out;
    ProductPush push;
    Batches batches;
    int batch_rank;
    uint64_t count; // batches
    VulkanReal real;
    bool padded[2]; // a, b: lines have room up to the next multiple of eight, which holds zeros
} Product;

// Whether eight numbers at a time come along k (0) or along the other dim (1); else -1. `side`: the
// length of the dim that is not k.
int product_across(const Product *product, const TensorView *view, int64_t depth_stride,
                   int64_t side_stride, uint32_t side);
// The largest power of two, from 2 to 16, that all columns of blocks and what lies in the blocks
// begin at multiples of.
// Whether shaders/include/blocks.glsl takes blocks of this dtype apart.
bool product_reads_units(DType dtype);
uint32_t product_align_blocks(const Product *product);
// One group a tile of rows x columns results.
Status product_set_tiles(Device *device, Product *product, uint32_t rows, uint32_t columns,
                         VulkanDispatch *dispatch) MUST_USE;
// Hands a dispatch over, whose groups in x are set, batch by batch.
Status product_dispatch(Device *device, const Product *product, VulkanDispatch *dispatch) MUST_USE;

// A product with the accuracy of float32 on matrix units, where the device and the operands allow
// it; false where they do not.
bool product_run_parts(Device *device, const Product *product, Status *status);
// A row by many weights in blocks, where the device takes a program for it; false where it does
// not.
bool product_run_row(Device *device, const Product *product, Status *status);

#endif
