// Gradient rules of shapes, indexing, matrices, normalisation, attention, convolution and losses.
#include "gradients.h"

// Sets the attributes that a row names.
#define SETTER(name, ...)                                                                          \
    static void name(OpAttributes *a) {                                                            \
        __VA_ARGS__                                                                                \
    }
#define GIVEN(name) a->given |= ATTRIBUTE_BIT(name);

static const int64_t two_two[] = {2, 2}, one_two[] = {1, 2}, one[] = {1}, three[] = {3},
                     two[] = {2}, two_one[] = {2, 1}, three_two[] = {3, 2};

SETTER(shape_3_4, GIVEN(shape) a->shape = (Shape){.rank = 2, .dims = {3, 4}};)
SETTER(shape_4_2_3, GIVEN(shape) a->shape = (Shape){.rank = 3, .dims = {4, 2, 3}};)
SETTER(dims_1_0, GIVEN(dims) a->dims = (Shape){.rank = 2, .dims = {1, 0}};)
SETTER(whole, GIVEN(start) GIVEN(stop) a->start = (Scalar){.dtype = DTYPE_INT64, .as.i = 0};
       a->stop = (Scalar){.dtype = DTYPE_INT64, .as.i = -1};)
SETTER(repeats_2_2, GIVEN(repeats) a->repeats = (IntList){two_two, 2};)
SETTER(repeats_3_dim_1, GIVEN(repeats) GIVEN(dim) a->repeats = (IntList){three, 1}; a->dim = 1;)
SETTER(shift_1, GIVEN(shifts) GIVEN(dims) a->shifts = (IntList){one, 1};
       a->dims = (Shape){.rank = 1, .dims = {1}};)
SETTER(part, GIVEN(dim) GIVEN(start) GIVEN(stop) GIVEN(step) a->dim = 1;
       a->start = (Scalar){.dtype = DTYPE_INT64, .as.i = 3};
       a->stop = (Scalar){.dtype = DTYPE_INT64, .as.i = 0};
       a->step = (Scalar){.dtype = DTYPE_INT64, .as.i = -2};)
SETTER(dim_1, GIVEN(dim) a->dim = 1;)
SETTER(dim_0_only, GIVEN(dim) a->dim = 0;)
SETTER(border, GIVEN(padding) GIVEN(value) a->padding = (IntList){one_two, 2};
       a->value = (Scalar){.dtype = DTYPE_FLOAT64, .as.f = 3};)
SETTER(k_1, GIVEN(k) a->k = 1;)
SETTER(n_2, GIVEN(n) a->n = 2;)

#define ROW(id, shape_, ...)                                                                       \
    {                                                                                              \
        .name = #id, .op = OP_##id, .n_inputs = 1, .shapes = {shape_}, .low = -2, .high = 2,       \
        __VA_ARGS__                                                                                \
    }
#define ROW2(id, x_, y_, ...)                                                                      \
    {                                                                                              \
        .name = #id, .op = OP_##id, .n_inputs = 2, .shapes = {x_, y_}, .low = -2, .high = 2,       \
        __VA_ARGS__                                                                                \
    }
#define ROW3(id, x_, y_, z_, ...)                                                                  \
    {                                                                                              \
        .name = #id, .op = OP_##id, .n_inputs = 3, .shapes = {x_, y_, z_}, .low = -2, .high = 2,   \
        __VA_ARGS__                                                                                \
    }

static const Case shapes[] = {
    ROW(reshape, S(2, 6), .set = shape_3_4),
    ROW(flatten, S(2, 3, 2), .set = whole),
    ROW(squeeze, S(2, 1, 3)),
    ROW(unsqueeze, S(2, 3), .set = dim_1),
    ROW(transpose, S(2, 3)),
    ROW(permute, S(2, 3), .set = dims_1_0),
    ROW(broadcast_to, S(2, 1), .set = shape_4_2_3),
    ROW2(concat, S(2, 3), S(2, 2), .set = dim_1, .many = true),
    ROW2(stack, S(2, 3), S(2, 3), .set = dim_1, .many = true),
    ROW(repeat, S(2, 3), .set = repeats_2_2),
    ROW(repeat, S(2, 3), .set = repeats_3_dim_1),
    ROW(tile, S(2, 3), .set = repeats_2_2),
    ROW(flip, S(2, 3)),
    ROW(roll, S(2, 3), .set = shift_1),
    ROW(slice_along, S(2, 5), .set = part),
    ROW(slice_last, S(2, 3), .set = dim_0_only),
    ROW(pad, S(2, 3), .set = border),
    ROW(contiguous, S(2, 3)),
    ROW(clone, S(2, 3)),
    ROW(tril, S(3, 3), .set = k_1),
    ROW(triu, S(3, 3)),
    ROW(diag, S(3)),
    ROW(diag, S(3, 3)),
    ROW(repeat_kv, S(2, 3, 2), .set = n_2),
};

static const double slices[] = {2, 0, 2}, places[] = {0, 2, 1, 1, 2, 0},
                    holes[] = {1, 0, 1, 1, 0, 0}, ids[] = {1, 0, 1, 2};
#define AT(input) .fixed = 1u << (input)

static const Case selections[] = {
    ROW2(gather, S(3, 2), S(3), AT(1), .numbers = {NULL, slices}, .dtypes = {0, DTYPE_INT64},
         .set = dim_0_only),
    ROW2(gather, S(3, 2), S(3, 2), AT(1), .numbers = {NULL, places}, .dtypes = {0, DTYPE_INT64},
         .set = dim_0_only),
    ROW3(scatter, S(3, 2), S(3, 2), S(3, 2), AT(1), .numbers = {NULL, places},
         .dtypes = {0, DTYPE_INT64}, .set = dim_0_only),
    ROW3(scatter_add, S(3, 2), S(3), S(3, 2), AT(1), .numbers = {NULL, slices},
         .dtypes = {0, DTYPE_INT64}, .set = dim_0_only),
    ROW2(index_select, S(3, 2), S(3), AT(1), .numbers = {NULL, slices}, .dtypes = {0, DTYPE_INT64},
         .set = dim_0_only),
    ROW2(take, S(3, 2), S(2, 2), AT(1), .numbers = {NULL, ids}, .dtypes = {0, DTYPE_INT64}),
    ROW2(embedding, S(3, 2), S(2, 2), AT(1), .numbers = {NULL, ids}, .dtypes = {0, DTYPE_INT64}),
    ROW2(masked_select, S(2, 3), S(2, 3), AT(1), .numbers = {NULL, holes},
         .dtypes = {0, DTYPE_BOOL}),
    ROW3(masked_fill, S(2, 3), S(2, 3), {.rank = 0}, AT(1), .numbers = {NULL, holes},
         .dtypes = {0, DTYPE_BOOL}),
};

SETTER(equation, GIVEN(equation) a->equation = "bij,bjk->ki";)
SETTER(equation_diagonal, GIVEN(equation) a->equation = "ii,ij,j->i";)

static const Case matrices[] = {
    ROW2(matmul, S(2, 3), S(3, 2)),
    ROW2(matmul, S(3), S(3, 2)),
    ROW2(matmul, S(2, 3), S(3)),
    ROW2(matmul, S(3), S(3)),
    ROW2(matmul, S(2, 2, 3), S(3, 2)),
    ROW2(matmul, S(2, 1, 2, 3), S(2, 3, 2)),
    ROW2(matmul, S(3), S(2, 3, 2)),
    ROW3(linear, S(2, 2, 3), S(4, 3), S(4)),
    ROW3(fused_gelu_linear, S(2, 3), S(3, 2), S(2)),
    ROW2(bmm, S(2, 2, 3), S(2, 3, 2)),
    ROW2(outer, S(2), S(3)),
    ROW(trace, S(3, 3)),
    ROW2(einsum, S(2, 2, 3), S(2, 3, 2), .set = equation, .many = true),
    ROW3(einsum, S(3, 3), S(3, 2), S(2), .set = equation_diagonal, .many = true),
    ROW(inv, S(2, 3, 3)),
    ROW(det, S(2, 3, 3)),
    ROW2(solve, S(3, 3), S(3, 2)),
    ROW2(solve, S(3, 3), S(3)),
};

SETTER(eps_1, GIVEN(eps) a->eps = 0.1;)
SETTER(groups_2, GIVEN(groups) GIVEN(eps) a->groups = 2; a->eps = 0.1;)
SETTER(l1, GIVEN(norm) a->norm = "l1";)

static const Case norms[] = {
    ROW2(rms_norm, S(2, 3), S(3), .set = eps_1),
    ROW2(rms_norm, S(2, 3, 2), S(3, 2), .set = eps_1),
    ROW(rms_norm, S(2, 3), .set = eps_1),
    ROW3(layer_norm, S(2, 3), S(3), S(3), .set = eps_1),
    ROW(layer_norm, S(2, 3), .set = eps_1),
    ROW3(batch_norm, S(4, 3), S(3), S(3), .set = eps_1),
    ROW3(group_norm, S(2, 4, 2), S(4), S(4), .set = groups_2),
    ROW2(lstm_cell, S(2, 8), S(2, 2)),
    ROW2(lstm_cell, S(4), S(1)),
    ROW3(gru_cell, S(2, 6), S(2, 6), S(2, 2)),
    ROW(normalize_features, S(2, 3)),
    ROW(normalize_features, S(2, 3), .set = l1),
};

static const double classes[] = {2, 0}, some_classes[] = {2, 0, 1};
SETTER(each, GIVEN(reduction) a->reduction = "none";)
SETTER(total, GIVEN(reduction) a->reduction = "sum";)
SETTER(smooth, GIVEN(label_smoothing) a->label_smoothing = 0.2;)
SETTER(ignore, GIVEN(ignore_index) a->ignore_index = 0;)
SETTER(all_options, each(a); smooth(a); ignore(a);)
#define CLASSES(...) AT(1), .numbers = {NULL, some_classes}, .dtypes = {0, DTYPE_INT64}, __VA_ARGS__
static const Case losses[] = {
    ROW2(mse_loss, S(2, 3), S(2, 3)),
    ROW2(mae_loss, S(2, 3), S(2, 3)),
    ROW2(huber_loss, S(2, 3), S(2, 3)),
    ROW2(cross_entropy, S(2, 3), S(2), AT(1), .numbers = {NULL, classes},
         .dtypes = {0, DTYPE_INT64}),
    ROW2(cross_entropy, S(2, 3), S(2, 3)),
    ROW2(nll_loss, S(2, 3), S(2), AT(1), .numbers = {NULL, classes}, .dtypes = {0, DTYPE_INT64}),
    ROW2(cross_entropy, S(3, 4), S(3), CLASSES(.set = each)),
    ROW2(cross_entropy, S(3, 4), S(3), CLASSES(.set = ignore)),
    ROW3(cross_entropy, S(3, 4), S(3), S(4), CLASSES(.set = total)),
    ROW3(cross_entropy, S(3, 4), S(3), S(4), CLASSES(.set = all_options)),
    ROW3(cross_entropy, S(2, 3), S(2, 3), S(3), .set = smooth),
    {.name = "cross_entropy with weights",
     .op = OP_cross_entropy,
     .n_inputs = 3,
     .shapes = {S(3, 4), S(3), S(4)},
     .low = 0.5,
     .high = 2,
     CLASSES(.set = smooth)},
    ROW3(nll_loss, S(3, 4), S(3), S(4), CLASSES(.set = all_options)),
    ROW2(binary_cross_entropy, S(2, 3), S(2, 3)),
    ROW3(binary_cross_entropy, S(2, 3), S(2, 3), S(3), .set = smooth),
    ROW3(binary_cross_entropy, S(2, 3), S(2, 3), S(2, 3), .set = each),
    ROW2(mse_loss, S(2, 3), S(2, 3), .set = each),
    ROW2(margin_ranking_loss, S(6), S(6)),
    {.name = "kl_div",
     .op = OP_kl_div,
     .n_inputs = 2,
     .shapes = {S(2, 3), S(2, 3)},
     .low = 0.2,
     .high = 1},
    ROW3(transe_score, S(2, 3), S(2, 3), S(2, 3)),
    ROW3(distmult_score, S(2, 3), S(2, 3), S(2, 3)),
    ROW3(relational_aggregate, S(2, 3), S(2, 3), S(2, 3)),
    ROW3(graph_attention, S(2, 3), S(2, 3), S(2, 3)),
    ROW(aggregate_neighbors, S(3, 2)),
    {.name = "complex_score",
     .op = OP_complex_score,
     .n_inputs = 6,
     .shapes = {S(2, 3), S(2, 3), S(3), S(2, 3), S(2, 3), S(2, 1)},
     .low = -2,
     .high = 2},
    {.name = "rotate_score",
     .op = OP_rotate_score,
     .n_inputs = 6,
     .shapes = {S(2, 3), S(2, 3), S(2, 3), S(3), S(2, 3), S(2, 3)},
     .low = -2,
     .high = 2},
    {.name = "rotate_score of a phase",
     .op = OP_rotate_score_phase,
     .n_inputs = 5,
     .shapes = {S(2, 3), S(2, 3), S(2, 3), S(2, 3), S(2, 3)},
     .low = -2,
     .high = 2},
};

SETTER(rope_half, GIVEN(style) GIVEN(offset) GIVEN(scale) a->style = "half"; a->offset = 3;
       a->scale = 0.5;)
SETTER(rope_inner, GIVEN(offset) GIVEN(rotary) a->offset = 1; a->rotary = 6;)
SETTER(warm, GIVEN(temperature) a->temperature = 0.7;)
SETTER(dropped, GIVEN(p) GIVEN(training) GIVEN(seed) a->p = 0.4; a->training = true; a->seed = 3;)
SETTER(heads_4, GIVEN(heads) a->heads = 4;)
SETTER(causal, GIVEN(causal) a->causal = true;)
static const double seen[] = {1, 0, 1, 0, 1, 1};

static const Case attention[] = {
    ROW(rope, S(2, 2, 4)),
    ROW(rope, S(2, 2, 4), .set = rope_half),
    ROW(cndl_rope, S(2, 2, 4)),
    ROW3(rope_tables, S(2, 2, 4), S(5, 2), S(5, 2), .set = rope_half),
    ROW3(rope_tables, S(2, 2, 3, 6), S(4, 3), S(4, 6), .set = rope_inner),
    ROW3(cndl_rope_tables, S(2, 2, 4), S(2, 4), S(2, 2)),
    ROW2(combine_masks, S(2, 3), S(3)),
    ROW(temperature, S(2, 3), .set = warm),
    ROW(dropout, S(4, 5), .set = dropped),
    {.name = "attention_with_cache",
     .op = OP_attention_with_cache,
     .n_inputs = 4,
     .shapes = {S(2, 8), S(3, 4), S(3, 4), S(3, 8)},
     .low = -2,
     .high = 2,
     .set = heads_4},
};

SETTER(strided,
       GIVEN(stride) GIVEN(padding) GIVEN(dilation) GIVEN(groups) a->stride = (IntList){two_one, 2};
       a->padding = (IntList){one, 1}; a->dilation = (IntList){one_two, 2}; a->groups = 2;)
SETTER(line, GIVEN(stride) GIVEN(padding) a->stride = (IntList){two, 1};
       a->padding = (IntList){one, 1};)
SETTER(window, GIVEN(size) a->size = (IntList){two, 1};)
SETTER(window_moved, GIVEN(size) GIVEN(stride) GIVEN(padding) a->size = (IntList){three_two, 2};
       a->stride = (IntList){two_one, 2}; a->padding = (IntList){one, 1};)
SETTER(window_in_image, window_moved(a); GIVEN(count_padding) a->count_padding = false;)

static const Case windows[] = {
    ROW3(conv2d, S(1, 2, 4, 3), S(2, 2, 2, 2), S(2)),
    ROW3(conv2d, S(2, 2, 5, 4), S(4, 1, 2, 2), S(4), .set = strided),
    ROW2(conv1d, S(2, 2, 6), S(3, 2, 3), .set = line),
    ROW2(conv1d, S(2, 5), S(3, 2, 2)),
    ROW(max_pool2d, S(1, 2, 4, 5), .set = window),
    ROW(max_pool2d, S(1, 2, 5, 4), .set = window_moved),
    ROW(max_pool2d, S(2, 4, 4), .set = window),
    ROW(avg_pool2d, S(1, 2, 4, 5), .set = window),
    ROW(avg_pool2d, S(1, 2, 5, 4), .set = window_moved),
    ROW(avg_pool2d, S(1, 2, 5, 4), .set = window_in_image),
};

TABLE(shapes)
TABLE(selections)
TABLE(matrices)
TABLE(norms)
TABLE(losses)
TABLE(attention)
TABLE(windows)

// q, k and v are cast to float32 by nobody: float64 attention is exact enough for differences.
static const Case heads[] = {
    ROW3(attention, S(2, 2, 2), S(3, 1, 2), S(3, 1, 3)),
    ROW3(attention, S(2, 3, 4, 2), S(2, 3, 2, 2), S(2, 3, 2, 2), .set = causal),
    {.name = "attention with a mask",
     .op = OP_attention,
     .n_inputs = 4,
     .shapes = {S(2, 2, 2), S(3, 2, 2), S(3, 2, 2), S(2, 3)},
     .low = -2,
     .high = 2,
     AT(3),
     .numbers = {NULL, NULL, NULL, seen},
     .dtypes = {0, 0, 0, DTYPE_BOOL}},
};
TABLE(heads)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),   cmocka_unit_test(test_selections),
        cmocka_unit_test(test_matrices), cmocka_unit_test(test_norms),
        cmocka_unit_test(test_losses),   cmocka_unit_test(test_attention),
        cmocka_unit_test(test_windows),  cmocka_unit_test(test_heads)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
