// Copies between views of one dtype whose neighbours lie along different dims, in tiles.
#include "device/vulkan/kernels.h"

enum { TILE = 32, TILE_SMALL = 64, WALK_VIEWS = 4, DIM_LEAST = 8 };

typedef struct TransposeShape {
    int64_t strides[WALK_VIEWS][RANK_MAX];
    uint32_t dims[RANK_MAX];
} TransposeShape;

// The dim along which a view's neighbours lie; -1 when there is none worth a tile.
static int find_neighbours(const Walk *walk, int view) {
    for (int d = 0; d < walk->rank; d++)
        if (walk->strides[view][d] == 1 && walk->dims[d] >= DIM_LEAST) return d;
    return -1;
}

bool vulkan_can_transpose(const TensorView *out, const TensorView *in) {
    if (out->dtype != in->dtype || dtype_is_quant(in->dtype)) return false;
    Walk walk;
    walk_prepare(&walk, 2, (const TensorView *const[]){out, in}, out->rank);
    int x = find_neighbours(&walk, 0), y = find_neighbours(&walk, 1);
    return walk.count <= UINT32_MAX && x >= 0 && y >= 0 && x != y;
}

Status vulkan_transpose(Device *device, const TensorView *out, const TensorView *in) {
    Walk walk;
    walk_prepare(&walk, 2, (const TensorView *const[]){out, in}, out->rank);
    int x = find_neighbours(&walk, 0), y = find_neighbours(&walk, 1);
    uint32_t size = (uint32_t)dtype_size(in->dtype), tile = size < 4 ? TILE_SMALL : TILE;
    TransposeShape shape = {0};
    uint64_t tiles = 1;
    for (int d = 0; d < walk.rank; d++) {
        shape.dims[d] = (uint32_t)walk.dims[d];
        for (int v = 0; v < 2; v++) shape.strides[v][d] = walk.strides[v][d];
        tiles *= d == x || d == y ? (shape.dims[d] + tile - 1) / tile : shape.dims[d];
    }
    const uint64_t push[2] = {vulkan_address(out), vulkan_address(in)};
    VulkanDispatch dispatch = {
        .shader = size == 8  ? SHADER_TRANSPOSE_WIDE
                  : size < 4 ? SHADER_TRANSPOSE_SMALL
                             : SHADER_TRANSPOSE,
        .n_constants = 4,
        .constants = {(uint32_t)walk.rank, size, (uint32_t)x, (uint32_t)y},
        .arguments = &shape,
        .arguments_bytes = sizeof shape,
        .push = push,
        .push_bytes = sizeof push,
        .cost = (uint64_t)walk.count * 2,
    };
    vulkan_reads(&dispatch, in);
    vulkan_writes(&dispatch, out);
    vulkan_groups_for(device, &dispatch, tiles, 1);
    return vulkan_dispatch(device, &dispatch);
}
