// einsum against a loop over every value of every letter.
#include "compare.h"

enum { LETTERS_MAX = 26 };

// The sum by brute force; `equation` has lower-case letters, commas and an output only.
static double *brute_force(const char *equation, Tensor *const *operands, int n, Shape *out) {
    int64_t sizes[LETTERS_MAX] = {0}, at[LETTERS_MAX] = {0}, total = 1;
    double *values[4], *result;
    const char *text = equation, *output = strstr(equation, "->") + 2;
    for (int t = 0; t < n; t++, text++) {
        for (int i = 0; *text != ',' && *text != '-'; text++, i++)
            if (operands[t]->view.dims[i] > sizes[*text - 'a'] || operands[t]->view.dims[i] == 0)
                sizes[*text - 'a'] = operands[t]->view.dims[i];
        values[t] = read_all(operands[t]);
    }
    *out = (Shape){0};
    for (const char *c = output; *c; c++) out->dims[out->rank++] = sizes[*c - 'a'];
    for (int l = 0; l < LETTERS_MAX; l++)
        if (strchr(equation, 'a' + l)) total *= sizes[l];
    result = calloc((size_t)shape_count(out) + 1, sizeof *result);
    for (int64_t step = 0; step < total; step++) {
        int64_t rest = step, place = 0;
        double product = 1;
        for (int l = 0; l < LETTERS_MAX; l++)
            if (strchr(equation, 'a' + l)) {
                at[l] = rest % sizes[l];
                rest /= sizes[l];
            }
        text = equation;
        for (int t = 0; t < n; t++, text++) {
            int64_t from = 0;
            for (int i = 0; *text != ',' && *text != '-'; text++, i++) {
                int64_t size = operands[t]->view.dims[i];
                from = from * size + (size == 1 ? 0 : at[*text - 'a']);
            }
            product *= values[t][from];
        }
        for (const char *c = output; *c; c++) place = place * sizes[*c - 'a'] + at[*c - 'a'];
        result[place] += product;
    }
    for (int t = 0; t < n; t++) free(values[t]);
    return result;
}

static Status run(const char *equation, Tensor *const *operands, int n, Tensor **out) {
    OpInput many[4];
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(equation), .equation = equation};
    for (int i = 0; i < n; i++) many[i] = op_tensor(operands[i]);
    OpCall call = {.op = &op_rows[OP_einsum], .attributes = &attributes, .many = many, .n_many = n};
    return op_apply(&call, out);
}

// `plain` is the same sum without ellipsis, capitals or implicit output.
static void check(const char *equation, const char *plain, int n, const Shape *shapes) {
    for (int layout = 0; layout < LAYOUTS; layout++) {
        Tensor *operands[4], *result;
        for (int i = 0; i < n; i++) {
            double *values = numbers(shape_count(&shapes[i]), (uint64_t)i + 3, DTYPE_FLOAT64);
            operands[i] = laid_out(DTYPE_FLOAT64, shapes[i], values, (TestLayout)layout);
            free(values);
        }
        Shape shape;
        double *want = brute_force(plain, operands, n, &shape);
        OK(run(equation, operands, n, &result));
        expect(result, DTYPE_FLOAT64, shape, want);
        free(want);
        for (int i = 0; i < n; i++) tensor_release(operands[i]);
    }
}

static void test_sums(void **state) {
    (void)state;
    Shape m23 = SHAPE(2, 3), m34 = SHAPE(3, 4), v3 = SHAPE(3), m33 = SHAPE(3, 3);
    Shape b1 = SHAPE(5, 2, 3), b2 = SHAPE(5, 3, 4), m45 = SHAPE(4, 5);
    check("ij,jk->ik", "ij,jk->ik", 2, (Shape[]){m23, m34});
    check("ij,jk", "ij,jk->ik", 2, (Shape[]){m23, m34});
    check(" ij , jk -> ki ", "ij,jk->ki", 2, (Shape[]){m23, m34});
    check("bij,bjk->bik", "bij,bjk->bik", 2, (Shape[]){b1, b2});
    check("bij,bjk->ik", "bij,bjk->ik", 2, (Shape[]){b1, b2});
    check("bij,bjk->kib", "bij,bjk->kib", 2, (Shape[]){b1, b2});
    check("ij->ji", "ij->ji", 1, &m23);
    check("ij->", "ij->", 1, &m23);
    check("ij->j", "ij->j", 1, &m23);
    check("ii->i", "ii->i", 1, &m33);
    check("ii", "ii->", 1, &m33);
    check("ii,i->i", "ii,i->i", 2, (Shape[]){m33, v3});
    check("i,i", "i,i->", 2, (Shape[]){v3, v3});
    check("i,j->ij", "i,j->ij", 2, (Shape[]){v3, SHAPE(4)});
    check("ij,ij->ij", "ij,ij->ij", 2, (Shape[]){m23, m23});
    check("ij,jk,kl->il", "ij,jk,kl->il", 3, (Shape[]){m23, m34, m45});
    check("ij,jk,kl,l->i", "ij,jk,kl,l->i", 4, (Shape[]){m23, m34, m45, SHAPE(5)});
    check("...ij,...jk->...ik", "bij,bjk->bik", 2, (Shape[]){b1, b2});
    check("...ij,jk", "bij,jk->bik", 2, (Shape[]){b1, m34});
    check("...i->...", "bci->bc", 1, &b1);
    check("abcd,ab->abc", "abcd,ab->abc", 2, (Shape[]){SHAPE(2, 3, 4, 5), m23});
    check("aB,Bc", "ab,bc->ac", 2, (Shape[]){m23, m34});
    check("ij,jk->ik", "ij,jk->ik", 2, (Shape[]){SHAPE(2, 1), m34});
    check("ij,jk->ik", "ij,jk->ik", 2, (Shape[]){SHAPE(2, 0), SHAPE(0, 4)});
}

static void test_dtypes(void **state) {
    (void)state;
    double values[] = {1, 2, 3, 4}, want[] = {7, 10, 15, 22};
    DType kept[] = {DTYPE_INT32, DTYPE_INT64, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        Tensor *x = make_tensor(kept[i], SHAPE(2, 2), values), *result;
        Tensor *pair[2] = {x, x};
        OK(run("ij,jk->ik", pair, 2, &result));
        expect(result, kept[i], SHAPE(2, 2), want);
        tensor_release(x);
    }
}

static void test_errors(void **state) {
    (void)state;
    double zeros[20] = {0};
    Tensor *result, *pair[2] = {make_tensor(DTYPE_FLOAT32, SHAPE(2, 3), zeros),
                                make_tensor(DTYPE_FLOAT32, SHAPE(4, 5), zeros)};
    struct {
        const char *equation;
        int n;
        Status code;
        const char *message;
    } wrong[] = {
        {"ij,jk->ik", 2, STATUS_SHAPE,
         "einsum: letter 'j' is 3 in float32[2, 3] and 4 in float32[4, 5]"},
        {"ijk,jk->ik", 2, STATUS_SHAPE,
         "einsum: \"ijk,jk->ik\" names 3 dimensions for operand 1, but it is float32[2, 3]"},
        {"ij->ik", 1, STATUS_VALUE, "einsum: \"ij->ik\": output letter 'k' is in no operand"},
        {"ij->ii", 1, STATUS_VALUE, "einsum: \"ij->ii\": output letter 'i' occurs twice"},
        {"ij,kl,m", 2, STATUS_ARITY,
         "einsum: \"ij,kl,m\" has more terms than the 2 operands given"},
        {"ij", 2, STATUS_ARITY, "einsum: \"ij\" has fewer terms than the 2 operands given"},
        {"i1", 1, STATUS_VALUE, "einsum: \"i1\": unexpected '1'"},
        {"ij-i", 1, STATUS_VALUE, "einsum: \"ij-i\": unexpected '-'"},
        {"ii", 1, STATUS_SHAPE, "einsum: letter 'i' is 2 in float32[2, 3] and 3 in float32[2, 3]"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(run(wrong[i].equation, pair, wrong[i].n, &result), wrong[i].code,
                     wrong[i].message, "");
    tensor_release(pair[0]);
    tensor_release(pair[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BALANCED_TEST(test_sums),
        BALANCED_TEST(test_dtypes),
        BALANCED_TEST(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
