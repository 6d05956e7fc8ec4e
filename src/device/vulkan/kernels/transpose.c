// Copies between views of one dtype whose neighbours lie along different dims, in tiles.
#include "device/vulkan/kernels/kernels.h"

enum { LINE = 16, DIM_LEAST = 8 };

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

// Both views can be reached LINE bytes at a time, each along its neighbours.
static bool has_lines(const Walk *walk, const int along[2], const TensorView *const views[2]) {
    int64_t many = LINE / (int64_t)dtype_size(views[0]->dtype);
    if (many < 4 || walk->dims[along[0]] % many != 0 || walk->dims[along[1]] % many != 0)
        return false;
    for (int v = 0; v < 2; v++) {
        if (vulkan_address(views[v]) % LINE != 0) return false;
        for (int d = 0; d < walk->rank; d++)
            if (d != along[v] && walk->strides[v][d] % many != 0) return false;
    }
    return true;
}

// The module for elements of a size, and what its workgroups move.
typedef struct Tiles {
    VulkanShader shader;
    uint32_t x, y;
} Tiles;

static Tiles choose_tiles(uint32_t size, bool lines) {
    if (lines && size == 4) return (Tiles){SHADER_TRANSPOSE_WORDS_4, 64, 64};
    if (lines && size == 2) return (Tiles){SHADER_TRANSPOSE_WORDS_2, 64, 128};
    if (lines) return (Tiles){SHADER_TRANSPOSE_WORDS_1, 128, 128};
    if (size == 8) return (Tiles){SHADER_TRANSPOSE_WIDE, 32, 32};
    return size == 4 ? (Tiles){SHADER_TRANSPOSE, 32, 32} : (Tiles){SHADER_TRANSPOSE_SMALL, 64, 64};
}

Status vulkan_transpose(Device *device, const TensorView *out, const TensorView *in) {
    Walk walk;
    walk_prepare(&walk, 2, (const TensorView *const[]){out, in}, out->rank);
    int x = find_neighbours(&walk, 0), y = find_neighbours(&walk, 1);
    uint32_t size = (uint32_t)dtype_size(in->dtype);
    bool lines = has_lines(&walk, (const int[]){x, y}, (const TensorView *const[]){out, in});
    Tiles tile = choose_tiles(size, lines);
    WalkStrides shape = {0};
    uint64_t tiles = 1;
    for (int d = 0; d < walk.rank; d++) {
        shape.dims[d] = (uint32_t)walk.dims[d];
        for (int v = 0; v < 2; v++) shape.strides[v][d] = walk.strides[v][d];
        uint32_t side = d == x ? tile.x : d == y ? tile.y : 1;
        tiles *= (shape.dims[d] + side - 1) / side;
    }
    TransposePush push = {.out_address = vulkan_address(out), .in_address = vulkan_address(in)};
    VulkanDispatch dispatch = {
        .shader = tile.shader,
        VULKAN_CONSTANTS(transpose, .RANK = (uint32_t)walk.rank, .X = (uint32_t)x, .Y = (uint32_t)y,
                         .ELEMENT_BYTES = size),
        VULKAN_ARGUMENTS(shape),
        VULKAN_PUSHED(push),
        .cost = (uint64_t)walk.count * 2,
    };
    vulkan_reads(&dispatch, in);
    vulkan_writes(&dispatch, out);
    vulkan_groups_for(device, &dispatch, tiles, 1);
    return vulkan_dispatch(device, &dispatch);
}
