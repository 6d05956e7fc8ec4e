// What the shaders share that multiply on matrix units: matrices of 16 x 16, and memory by eight
// 16-bit numbers. Written for GL_NV_cooperative_matrix, and given to devices in the words of
// SPV_KHR_cooperative_matrix (device/vulkan/spirv/dialect.c), which also makes bfloat16 of it: what
// includes this may not compute with float16.
#ifndef MATRIX_UNITS_GLSL
#define MATRIX_UNITS_GLSL

#extension GL_NV_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "types.glsl"

// 16 each, by names of their own: dialect.c tells the factors apart by them. Sizes of arrays and ends
// of loops are plain numbers, or drivers keep the matrices in memory.
layout(constant_id = 12) const uint M = 16;
layout(constant_id = 13) const uint N = 16;
layout(constant_id = 14) const uint K = 16;

layout(buffer_reference, scalar, buffer_reference_align = 16) restrict readonly buffer Eight {
    uvec4 v;
};

#endif
