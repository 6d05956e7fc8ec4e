// Selecting and placing by index, against plain indexing.
#include "compare.h"

static OpAttributes along(int64_t dim) {
    return (OpAttributes){.given = ATTRIBUTE_BIT(dim), .dim = dim};
}

static void test_slices(void **state) {
    (void)state;
    double ids[] = {2, 0, -1, 2};
    DType id_types[] = {DTYPE_INT64, DTYPE_INT8, DTYPE_UINT8, DTYPE_FLOAT32};
    for (int d = 0; d < DTYPES; d++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int dim = 0; dim < 2; dim++) {
                double *values = numbers(9, (uint64_t)d, all_dtypes[d]), want[12];
                Tensor *x = laid_out(all_dtypes[d], SHAPE(3, 3), values, (TestLayout)layout);
                DType id_type = id_types[(d + layout) % 4];
                double places[4];
                for (int i = 0; i < 4; i++)
                    places[i] = id_type == DTYPE_UINT8 && ids[i] < 0 ? 2 : ids[i];
                Tensor *index = laid_out(id_type, SHAPE(4), places, (TestLayout)layout);
                free(values);
                values = read_all(x);
                Shape shape = dim ? SHAPE(3, 4) : SHAPE(4, 3);
                for (int i = 0; i < 12; i++) {
                    int row = dim ? i / 4 : ((int)ids[i / 3] + 3) % 3;
                    int column = dim ? ((int)ids[i % 4] + 3) % 3 : i % 3;
                    want[i] = values[row * 3 + column];
                }
                OpAttributes a = along(dim - 2);
                expect(apply(OP_index_select, &a, 2, x, index), all_dtypes[d], shape, want);
                expect(apply(OP_gather, &a, 2, x, index), all_dtypes[d], shape, want);
                expect(apply(OP_take, &a, 2, x, index), all_dtypes[d], shape, want);
                free(values);
                tensor_release(x);
                tensor_release(index);
            }
}

static void test_elementwise_gather(void **state) {
    (void)state;
    double x[] = {1, 2, 3, 4, 5, 6}, index[] = {2, 0, 1, -1}, want[] = {3, 1, 5, 6};
    for (int layout = 0; layout < LAYOUTS; layout++) {
        Tensor *t = laid_out(DTYPE_INT16, SHAPE(2, 3), x, (TestLayout)layout);
        Tensor *i = laid_out(DTYPE_INT64, SHAPE(2, 2), index, (TestLayout)layout);
        OpAttributes a = along(1);
        expect(apply(OP_gather, &a, 2, t, i), DTYPE_INT16, SHAPE(2, 2), want);
        tensor_release(t);
        tensor_release(i);
    }
}

static void test_take_and_embedding(void **state) {
    (void)state;
    double x[] = {1, 2, 3, 4, 5, 6}, index[] = {5, 0, -2, 1}, flat[] = {6, 1, 5, 2};
    double rows[] = {3, 4, 1, 2, 5, 6, 3, 4}, ids[] = {1, 0, 2, 1}, one = 2;
    for (int d = 1; d < DTYPES; d++) {
        Tensor *t = laid_out(all_dtypes[d], SHAPE(3, 2), x, TRANSPOSED);
        Tensor *i = make_tensor(DTYPE_INT32, SHAPE(2, 2), index);
        Tensor *places = make_tensor(DTYPE_INT64, SHAPE(2, 2), ids);
        Tensor *last = make_tensor(DTYPE_INT64, (Shape){0}, &one);
        expect(apply(OP_take, NULL, 2, t, i), all_dtypes[d], SHAPE(2, 2), flat);
        expect(apply(OP_embedding, NULL, 2, t, places), all_dtypes[d], SHAPE(2, 2, 2), rows);
        expect(apply(OP_cndl_embedding, NULL, 2, places, t), all_dtypes[d], SHAPE(2, 2, 2), rows);
        expect(apply(OP_embedding, NULL, 2, t, last), all_dtypes[d], SHAPE(2), x + 4);
        tensor_release(t);
        tensor_release(i);
        tensor_release(places);
        tensor_release(last);
    }
    double *blocks = numbers(3 * 32, 2, DTYPE_INT8);
    Tensor *table = make_q8_0(3, 32, blocks), *last = make_tensor(DTYPE_INT64, (Shape){0}, &one);
    expect(apply(OP_embedding, NULL, 2, table, last), DTYPE_FLOAT32, SHAPE(32), blocks + 64);
    tensor_release(table);
    tensor_release(last);
    free(blocks);
}

static void test_scatter(void **state) {
    (void)state;
    double base[] = {1, 1, 1, 1, 1, 1}, ids[] = {2, 0}, source[] = {5, 6, 7, 8}, nine = 9;
    double placed[] = {6, 1, 5, 8, 1, 7}, added[] = {7, 1, 6, 9, 1, 8},
           filled[] = {9, 1, 9, 9, 1, 9};
    double twice[] = {0, 0}, sums[] = {12, 1, 1, 16, 1, 1};
    double places[] = {2, 1}, values[] = {5, 6}, each[] = {1, 1, 5, 1, 6, 1};
    for (int d = 1; d < DTYPES; d++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            DType dtype = all_dtypes[d];
            OpAttributes a = along(-1);
            Tensor *x = laid_out(dtype, SHAPE(2, 3), base, (TestLayout)layout);
            Tensor *i = laid_out(DTYPE_INT64, SHAPE(2), ids, (TestLayout)layout);
            Tensor *same = make_tensor(DTYPE_INT32, SHAPE(2), twice);
            Tensor *s = laid_out(DTYPE_FLOAT32, SHAPE(2, 2), source, (TestLayout)layout);
            Tensor *number = make_tensor(DTYPE_FLOAT32, (Shape){0}, &nine);
            Tensor *places_2d = laid_out(DTYPE_INT64, SHAPE(2, 1), places, (TestLayout)layout);
            Tensor *values_2d = make_tensor(dtype, SHAPE(2, 1), values);
            expect(apply(OP_scatter, &a, 3, x, i, s), dtype, SHAPE(2, 3), placed);
            expect(apply(OP_scatter_add, &a, 3, x, i, s), dtype, SHAPE(2, 3), added);
            expect(apply(OP_scatter, &a, 3, x, i, number), dtype, SHAPE(2, 3), filled);
            expect(apply(OP_scatter_add, &a, 3, x, same, s), dtype, SHAPE(2, 3), sums);
            expect(apply(OP_scatter, &a, 3, x, places_2d, values_2d), dtype, SHAPE(2, 3), each);
            expect(tensor_retain(x), dtype, SHAPE(2, 3), base);
            tensor_release(x);
            tensor_release(i);
            tensor_release(same);
            tensor_release(s);
            tensor_release(number);
            tensor_release(places_2d);
            tensor_release(values_2d);
        }
}

static void test_masks(void **state) {
    (void)state;
    double x[] = {1, 2, 3, 4, 5, 6}, mask[] = {1, 0, 1}, picked[] = {1, 3, 4, 6}, zero = 0;
    double filled[] = {0, 2, 0, 0, 5, 0}, where[] = {0, 1, 1, 1}, five = 5, one = 1;
    for (int d = 1; d < DTYPES; d++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            Tensor *t = laid_out(all_dtypes[d], SHAPE(2, 3), x, (TestLayout)layout);
            Tensor *m = laid_out(DTYPE_BOOL, SHAPE(3), mask, (TestLayout)layout);
            Tensor *value = make_tensor(DTYPE_FLOAT64, (Shape){0}, &zero);
            expect(apply(OP_masked_select, NULL, 2, t, m), all_dtypes[d], SHAPE(4), picked);
            Tensor *result = apply(OP_masked_fill, NULL, 3, t, m, value);
            expect(tensor_retain(result), all_dtypes[d], SHAPE(2, 3), filled);
            expect(apply(OP_nonzero, NULL, 1, result), DTYPE_INT64, SHAPE(2, 2), where);
            tensor_release(result);
            tensor_release(t);
            tensor_release(m);
            tensor_release(value);
        }
    Tensor *number = make_tensor(DTYPE_FLOAT32, (Shape){0}, &five);
    Tensor *yes = make_tensor(DTYPE_BOOL, (Shape){0}, &one);
    expect(apply(OP_masked_select, NULL, 2, number, yes), DTYPE_FLOAT32, SHAPE(1), &five);
    expect(apply(OP_nonzero, NULL, 1, number), DTYPE_INT64, SHAPE(1, 1), &zero);
    tensor_release(number);
    tensor_release(yes);
}

static void test_errors(void **state) {
    (void)state;
    double zeros[12] = {0}, wrong[] = {0, 4}, half[] = {0, 0.5};
    Tensor *result, *table = make_tensor(DTYPE_FLOAT32, SHAPE(4, 2), zeros);
    Tensor *far = make_tensor(DTYPE_INT64, SHAPE(2), wrong);
    Tensor *broken = make_tensor(DTYPE_FLOAT32, SHAPE(2), half);
    Tensor *boolean = make_tensor(DTYPE_BOOL, SHAPE(2), zeros);
    Tensor *tall = make_tensor(DTYPE_INT64, SHAPE(5, 2), zeros);
    Tensor *zero_ids = make_tensor(DTYPE_INT64, SHAPE(2), zeros);
    OpAttributes rows = along(0), columns = along(1);
    assert_fails(op_with(OP_embedding, (Tensor *[]){table, far}, 2, NULL, &result), STATUS_INDEX,
                 "index 4 is out of range for dimension 0 of float32[4, 2]: its size is 4", "");
    assert_fails(op_with(OP_gather, (Tensor *[]){table, broken}, 2, &rows, &result), STATUS_VALUE,
                 "gather: index must hold integers, but number 1 is 0.5", "");
    assert_fails(op_with(OP_gather, (Tensor *[]){table, boolean}, 2, &rows, &result), STATUS_DTYPE,
                 "gather: index must hold integers, but it is bool[2]", "");
    assert_fails(
        op_with(OP_gather, (Tensor *[]){table, tall}, 2, &columns, &result), STATUS_SHAPE,
        "gather: index int64[5, 2] does not fit float32[4, 2] along dimension 1",
        "give an index of the tensor's rank, no larger than it in the other dimensions, or "
        "a 1-D index that selects whole slices");
    assert_fails(op_with(OP_scatter, (Tensor *[]){table, zero_ids, tall}, 3, &rows, &result),
                 STATUS_SHAPE,
                 "scatter: source is int64[5, 2], but the index selects float32[2, 2]", "");
    assert_fails(op_with(OP_embedding, (Tensor *[]){far, table}, 2, NULL, &result), STATUS_SHAPE,
                 "embedding: the table must be [vocab, dim], but it is int64[2]",
                 "the order is embedding(table, ids)");
    tensor_release(table);
    tensor_release(far);
    tensor_release(broken);
    tensor_release(boolean);
    tensor_release(tall);
    tensor_release(zero_ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BALANCED_TEST(test_slices),
        BALANCED_TEST(test_elementwise_gather),
        BALANCED_TEST(test_take_and_embedding),
        BALANCED_TEST(test_scatter),
        BALANCED_TEST(test_masks),
        BALANCED_TEST(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
