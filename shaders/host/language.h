// What the host and a shader agree on, in words of both languages: NAME.h says what
// device/vulkan/kernels gives to NAME.comp. Shaders include types.glsl before.
//     SHARED_NUMBER(name, value)           a number that both know
//     CONSTANTS(name) ... CONSTANTS_END    specialization constants, each
//                                          CONSTANT(id, type, name, default); of 32 bits, with ids
//                                          from 0 in their order
//     STORED(name) ... END(name, bytes)    a struct in memory: the arguments of a dispatch
//     PUSHED(name) ... END(name, bytes)    push constants, which begin with ARGUMENTS(type, name)
//                                          where a dispatch has arguments
// Numbers are int32_t, uint32_t, int64_t, uint64_t; REAL(name) takes 64 bits, of which the shader
// reads a number of its compute type (vulkan_real_bits). Scalar layout is that of C but for padding
// at the end, so a struct whose size is right is laid out alike.
#ifndef HOST_LANGUAGE_H
#define HOST_LANGUAGE_H

// clang-format off: what a macro begins another one ends
#ifdef GL_core_profile

#define SHARED_NUMBER(name, value) const uint name = value;
#define CONSTANTS(name)
#define CONSTANT(id, type, name, value) layout(constant_id = id) const type name = value;
#define CONSTANTS_END(name, count)
#define STORED(name)                                                                               \
    layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer name {
#define PUSHED(name) layout(push_constant, scalar) uniform name {
#define ARGUMENTS(type, name) type name;
#define END(name, bytes)                                                                           \
    }                                                                                              \
    ;
#ifdef REAL_F32
#define REAL(name)                                                                                 \
    float name;                                                                                    \
    uint name##_unused;
#else
#define REAL(name) real name;
#endif
SHARED_NUMBER(RANK_MAX, 8)
SHARED_NUMBER(NO_DTYPE, 15)

#else

#include "device/kernel.h"

#define SHARED_NUMBER(name, value) enum { name = value };
#define CONSTANTS(name) typedef struct name {
#define CONSTANT(id, type, name, value) uint32_t name;
#define CONSTANTS_END(name, count)                                                                 \
    }                                                                                              \
    name;                                                                                          \
    _Static_assert(sizeof(name) == 4 * (count), #name " has as many constants as it has ids");
#define STORED(name) typedef struct name {
#define PUSHED(name) typedef struct name {
#define ARGUMENTS(type, name)
#define END(name, bytes)                                                                           \
    }                                                                                              \
    name;                                                                                          \
    _Static_assert(sizeof(name) == (bytes), #name " is laid out as the shader sees it");
#define REAL(name) uint64_t name;
SHARED_NUMBER(NO_DTYPE, 15)
_Static_assert((int)RANK_MAX == 8, "shaders have the same");

#endif
// clang-format on

#endif
