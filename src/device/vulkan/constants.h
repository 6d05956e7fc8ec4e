// The specialization constants of shaders, by name: the struct of each is in shaders/host/.
#ifndef DEVICE_VULKAN_CONSTANTS_H
#define DEVICE_VULKAN_CONSTANTS_H

#include "shaders/host/arange.h"
#include "shaders/host/arg_reduce.h"
#include "shaders/host/attention.h"
#include "shaders/host/attention_few.h"
#include "shaders/host/attention_join.h"
#include "shaders/host/attention_many.h"
#include "shaders/host/check_index.h"
#include "shaders/host/convolution_results.h"
#include "shaders/host/convolution_weights.h"
#include "shaders/host/copy.h"
#include "shaders/host/gather.h"
#include "shaders/host/index_put.h"
#include "shaders/host/linear_attention.h"
#include "shaders/host/map.h"
#include "shaders/host/matmul.h"
#include "shaders/host/matmul_matrix.h"
#include "shaders/host/matmul_parts.h"
#include "shaders/host/matvec.h"
#include "shaders/host/matvec_blocks.h"
#include "shaders/host/nonzero.h"
#include "shaders/host/norm.h"
#include "shaders/host/optimizer.h"
#include "shaders/host/random.h"
#include "shaders/host/reduce.h"
#include "shaders/host/rope.h"
#include "shaders/host/scan.h"
#include "shaders/host/scatter.h"
#include "shaders/host/scatter_add.h"
#include "shaders/host/softmax.h"
#include "shaders/host/sort_block.h"
#include "shaders/host/sort_keys.h"
#include "shaders/host/transpose.h"
#include "shaders/host/window.h"
#include "shaders/host/window_image.h"

// Of imported programs (shaders/nvidia/): $0, $1... in their text.
typedef struct MatmulImportConstants {
    uint32_t a_across, b_across;        // numbers of a, of b, are neighbours across k
    uint32_t out_float32, out_anywhere; // results are float32; their rows begin anywhere
} MatmulImportConstants;
typedef struct AttentionImportConstants {
    uint32_t causal, out_float32;
} AttentionImportConstants;
typedef struct MatvecImportConstants {
    uint32_t units; // of the row, for which there is room
} MatvecImportConstants;

enum { VULKAN_CONSTANTS_MAX = 12 }; // ids from here on are the shaders' own

typedef union VulkanConstants {
    uint32_t words[VULKAN_CONSTANTS_MAX];
    ArangeConstants arange;
    ArgReduceConstants arg_reduce;
    AttentionConstants attention;
    AttentionFewConstants attention_few;
    AttentionJoinConstants attention_join;
    AttentionManyConstants attention_many;
    CheckIndexConstants check_index;
    ConvolutionConstants convolution;
    ConvolutionWeightsConstants convolution_weights;
    GatherConstants gather;
    IndexPutConstants index_put;
    LinearAttentionConstants linear_attention;
    MapConstants map;
    MatmulConstants matmul;
    MatmulMatrixConstants matmul_matrix;
    MatmulPartsConstants matmul_parts;
    MatvecConstants matvec;
    MatvecBlocksConstants matvec_blocks;
    NonzeroConstants nonzero;
    NormConstants norm;
    OptimizerConstants optimizer;
    RandomConstants random;
    ReduceConstants reduce;
    RopeConstants rope;
    ScanConstants scan;
    ScatterConstants scatter;
    ScatterAddConstants scatter_add;
    SoftmaxConstants softmax;
    SortBlockConstants sort_block;
    SortKeysConstants sort_keys;
    TransposeConstants transpose;
    WindowConstants window;
    WindowImageConstants window_image;
    MatmulImportConstants matmul_import;
    AttentionImportConstants attention_import;
    MatvecImportConstants matvec_import;
} VulkanConstants;

// Constants of a dispatch by name, of one member: as its initialisers, or later.
#define VULKAN_CONSTANT_COUNT(member)                                                              \
    ((int)(sizeof((VulkanConstants *)0)->member / sizeof(uint32_t)))
#define VULKAN_CONSTANTS(member, ...)                                                              \
    .n_constants = VULKAN_CONSTANT_COUNT(member), .constants = {.member = {__VA_ARGS__}}
#define VULKAN_SET_CONSTANTS(dispatch, member, ...)                                                \
    ((dispatch)->n_constants = VULKAN_CONSTANT_COUNT(member),                                      \
     (dispatch)->constants = (VulkanConstants){.member = {__VA_ARGS__}})

// What is pushed, and what is copied before, as initialisers of a dispatch; or what is pushed,
// later.
#define VULKAN_PUSHED(pushed) .push = &(pushed), .push_bytes = sizeof(pushed)
#define VULKAN_ARGUMENTS(given) .arguments = &(given), .arguments_bytes = sizeof(given)
#define VULKAN_SET_PUSHED(dispatch, pushed)                                                        \
    ((dispatch)->push = &(pushed), (dispatch)->push_bytes = sizeof(pushed))

#endif
