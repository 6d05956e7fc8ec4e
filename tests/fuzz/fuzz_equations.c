// Fuzzes tensor equations: programs of them are written from the bytes, checked and run. What is
// only a product equals its sum, made here with loops; of the others it is enough that they end.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "include/tl.h"

enum { INDEXES = 4, TENSORS = 4, RANKS = 3, FACTORS = 4, STATEMENTS = 6, NUMBERS_MAX = 64 };

static const char letters[] = "ijkl";

typedef struct Input {
    const uint8_t *bytes;
    size_t length, at;
} Input;

typedef struct Tensor {
    int rank, sizes[RANKS];
    double numbers[NUMBERS_MAX];
} Tensor;

typedef struct Program {
    Input input;
    tl_runtime *runtime;
    Tensor tensors[TENSORS]; // A, B, C, D
    Text text;
} Program;

static int next(Program *program, int below) {
    Input *input = &program->input;
    return input->at < input->length ? input->bytes[input->at++] % below : 0;
}

// --- tensors

static void tensor_write(Program *program, const Tensor *tensor, int dim, int *at) {
    if (dim == tensor->rank) {
        text_format(&program->text, "%.1f", tensor->numbers[(*at)++]);
        return;
    }
    text_append_string(&program->text, "[");
    for (int i = 0; i < tensor->sizes[dim]; i++) {
        if (i > 0) text_append_string(&program->text, ", ");
        tensor_write(program, tensor, dim + 1, at);
    }
    text_append_string(&program->text, "]");
}

static bool run(Program *program) {
    tl_status status = tl_run_text(program->runtime, "fuzz", text_get(&program->text), NULL);
    text_clear(&program->text);
    return status == TL_OK;
}

static void tensors_make(Program *program) {
    for (int i = 0; i < TENSORS; i++) {
        Tensor *tensor = &program->tensors[i];
        tensor->rank = 1 + next(program, RANKS);
        int count = 1, at = 0;
        for (int dim = 0; dim < tensor->rank; dim++)
            count *= tensor->sizes[dim] = 1 + next(program, 4);
        for (int j = 0; j < count; j++) tensor->numbers[j] = next(program, 9) / 2.0 - 2.0;
        text_format(&program->text, "let %c = ", "ABCD"[i]);
        tensor_write(program, tensor, 0, &at);
        text_append_string(&program->text, "\n");
    }
    if (!run(program)) abort();
}

// --- products, and what they must be

typedef struct Product {
    int factors, tensor[FACTORS], index[FACTORS][RANKS];
    int rank, left[INDEXES];
    int sizes[INDEXES]; // of the indexes; 0: it does not occur
} Product;

// Indexes of one size everywhere, and on the left some of them, each once.
static bool product_read(Program *program, Product *product) {
    *product = (Product){.factors = 1 + next(program, FACTORS)};
    for (int i = 0; i < product->factors; i++) {
        const Tensor *tensor = &program->tensors[product->tensor[i] = next(program, TENSORS)];
        for (int dim = 0; dim < tensor->rank; dim++) {
            int index = product->index[i][dim] = next(program, INDEXES);
            if (product->sizes[index] && product->sizes[index] != tensor->sizes[dim]) return false;
            product->sizes[index] = tensor->sizes[dim];
        }
    }
    for (int i = 0, order = next(program, INDEXES); i < INDEXES; i++) {
        int index = (i + order) % INDEXES;
        if (product->sizes[index] && next(program, 2)) product->left[product->rank++] = index;
    }
    return true;
}

static void factor_write(Program *program, const Product *product, int factor) {
    const Tensor *tensor = &program->tensors[product->tensor[factor]];
    text_format(&program->text, "%c[", "ABCD"[product->tensor[factor]]);
    for (int dim = 0; dim < tensor->rank; dim++)
        text_format(&program->text, "%s%c", dim ? ", " : "", letters[product->index[factor][dim]]);
    text_append_string(&program->text, "]");
}

static void product_write(Program *program, const Product *product, const char *name) {
    text_append_string(&program->text, name);
    for (int i = 0; i < product->rank; i++)
        text_format(&program->text, "%s%c", i ? ", " : "[", letters[product->left[i]]);
    text_append_string(&program->text, product->rank ? "] = " : " <- ");
    for (int i = 0; i < product->factors; i++) {
        if (i > 0) text_append_string(&program->text, next(program, 2) ? " * " : " ");
        factor_write(program, product, i);
    }
    text_append_string(&program->text, "\n");
}

static double factor_at(const Program *program, const Product *product, int factor,
                        const int *values) {
    const Tensor *tensor = &program->tensors[product->tensor[factor]];
    int at = 0;
    for (int dim = 0; dim < tensor->rank; dim++)
        at = at * tensor->sizes[dim] + values[product->index[factor][dim]];
    return tensor->numbers[at];
}

// *sizes: of the magnitudes of what was summed.
static void product_sum(const Program *program, const Product *product, double *sums,
                        double *sizes) {
    int values[INDEXES] = {0}, going = 1;
    while (going) {
        int at = 0;
        double number = 1;
        for (int i = 0; i < product->rank; i++)
            at = at * product->sizes[product->left[i]] + values[product->left[i]];
        for (int i = 0; i < product->factors; i++) number *= factor_at(program, product, i, values);
        sums[at] += number;
        sizes[at] += fabs(number);
        going = 0;
        for (int i = 0; i < INDEXES && !going; i++) {
            if (++values[i] < product->sizes[i])
                going = 1;
            else
                values[i] = 0;
        }
    }
}

static void product_compare(Program *program) {
    enum { RESULT_MAX = 256 }; // 4 indexes of at most 4
    Product product;
    if (!product_read(program, &product)) return;
    product_write(program, &product, "Z");
    if (!run(program)) abort();
    double sums[RESULT_MAX] = {0}, sizes[RESULT_MAX] = {0};
    float found[RESULT_MAX];
    product_sum(program, &product, sums, sizes);
    tl_value *value;
    if (tl_get(program->runtime, "Z", &value) != TL_OK) abort();
    size_t count = 1;
    for (int i = 0; i < product.rank; i++) count *= (size_t)product.sizes[product.left[i]];
    if (product.rank == 0) {
        double number;
        if (tl_to_float(value, &number) != TL_OK) abort();
        found[0] = (float)number;
    } else if (tl_copy(value, found, count * sizeof *found) != TL_OK) {
        abort();
    }
    tl_release(value);
    for (size_t i = 0; i < count; i++)
        if (!(fabs(found[i] - sums[i]) <= 1e-5 * sizes[i] + 1e-6)) abort();
}

// --- anything else

static void term_write(Program *program, int depth);

static void index_write(Program *program) {
    static const char *const forms[] = {"%c+1", "%c-1", "%c/2", "%c.", "*%c", "*%c+1", "%c+j",
                                        "2*%c", "%c'",  "0",    "1:",  ":",   "%c+dx"};
    int form = next(program, 40);
    text_format(&program->text, form < 13 ? forms[form] : "%c", letters[next(program, INDEXES)]);
}

static void tensor_named(Program *program) {
    static const char *const names[] = {"X", "Y", "Z", "missing"};
    int name = next(program, 4 * TENSORS), rank = next(program, RANKS + 1);
    if (name < 4) {
        text_append_string(&program->text, names[name]);
    } else {
        text_format(&program->text, "%c", "ABCD"[name % TENSORS]);
        rank = program->tensors[name % TENSORS].rank;
    }
    for (int i = 0; i < rank; i++) {
        text_append_string(&program->text, i ? ", " : "[");
        index_write(program);
    }
    if (rank) text_append_string(&program->text, "]");
}

static void around(Program *program, const char *before, int depth, const char *after) {
    text_append_string(&program->text, before);
    term_write(program, depth);
    text_append_string(&program->text, after);
}

static void term_write(Program *program, int depth) {
    static const char *const calls[] = {"relu(",   "exp(",     "sqrt(",   "softmax(",
                                        "sum[j](", "max[k](",  "avg[i](", "step(",
                                        "concat(", "sigmoid(", "-(",      "lnorm("};
    static const char *const signs[] = {" ", " * ", " + ", " - ", " / ", " ** "};
    int form = depth <= 0 ? next(program, 4) : next(program, 8);
    if (form < 3) {
        tensor_named(program);
    } else if (form == 3) {
        text_format(&program->text, "%d.5", next(program, 4));
    } else if (form == 4) {
        around(program, calls[next(program, 12)], depth - 1, ")");
    } else {
        around(program, form == 5 ? "(" : "", depth - 1, "");
        around(program, signs[next(program, 6)], depth - 1, form == 5 ? ")" : "");
    }
}

static void equation_write(Program *program) {
    static const char *const signs[] = {
        " = ", " = ", " = ", " += ", " max= ", " min= ", " avg= ", " <- "};
    static const char *const lefts[] = {"X[i]",       "Y[j]",       "X[i, j]",     "Y[k, i]",
                                        "X",          "Y[i, j, k]", "X[i.]",       "X[i, j.]",
                                        "Y[i, *t+1]", "X[i+1]",     "Y[i/2, j/2]", "X[0, i]",
                                        "Y[1:, i]",   "Z[i, i]",    "X[i, l']"};
    text_append_string(&program->text, lefts[next(program, 15)]);
    around(program, signs[next(program, 8)], 3, "\n");
}

static void statement_run(Program *program) {
    switch (next(program, 4)) {
    case 0:
    case 1: product_compare(program); return;
    case 2: equation_write(program); break;
    default:
        text_append_string(&program->text, "program P { max_iterations: 5\n");
        for (int i = 1 + next(program, 3); i > 0; i--) equation_write(program);
        text_append_string(&program->text, "}\nP.X?\n");
    }
    (void)run(program); // it may be wrong in many ways
}

static void ignore(void *context, int is_error, const char *bytes, size_t length) {
    (void)context, (void)is_error, (void)bytes, (void)length;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    Program program = {.input = {bytes, length, 0}, .runtime = tl_runtime_new("cpu", NULL)};
    if (!program.runtime) abort();
    tl_on_output(program.runtime, ignore, NULL);
    tensors_make(&program);
    for (int i = 0; i < STATEMENTS && program.input.at < length; i++) statement_run(&program);
    tl_runtime_free(program.runtime);
    text_free(&program.text);
    return 0;
}
