// Einstein sums: einsum("bij,bjk->bik", a, b). The text becomes a list of labels per operand;
// operands are contracted two at a time, the smallest intermediate first, each time by one matrix
// product.
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/matrix.h"

// Letters are labels 0..51; the dimensions of an ellipsis, counted from its right end, follow.
enum { LETTERS = 52, LABELS_MAX = LETTERS + RANK_MAX, OPERANDS_MAX = 16 };

typedef struct Labels {
    int count;
    int items[RANK_MAX];
} Labels;

typedef struct Term {
    Tensor *tensor; // owned
    Labels labels;
} Term;

typedef struct Einsum {
    const OpCall *call;
    int n_terms;
    Term terms[OPERANDS_MAX];
    Labels output;
    int ellipsis_rank;         // the longest ellipsis of an operand
    int64_t sizes[LABELS_MAX]; // -1: not seen
    int seen_in[LABELS_MAX];   // the operand that gave the size
} Einsum;

static void einsum_release(Einsum *sum) {
    for (int i = 0; i < sum->n_terms; i++) tensor_release(sum->terms[i].tensor);
}

static char label_letter(int label) {
    if (label >= LETTERS) return '.';
    return (char)(label < 26 ? 'a' + label : 'A' + label - 26);
}
static int letter_label(char letter) {
    return letter >= 'a' ? letter - 'a' : letter - 'A' + 26;
}

static Status fail_equation(const Einsum *sum, const char *problem) {
    return fail(STATUS_VALUE, "einsum: \"%s\": %s", sum->call->attributes->equation, problem);
}

static Status push_label(const Einsum *sum, Labels *labels, int label) {
    if (labels->count == RANK_MAX) return fail_equation(sum, "more than 8 dimensions in one term");
    labels->items[labels->count++] = label;
    return STATUS_OK;
}

static bool labels_have(const Labels *labels, int label) {
    for (int i = 0; i < labels->count; i++)
        if (labels->items[i] == label) return true;
    return false;
}

// Reads one term up to ',', '-' or the end. `dots` is how many dimensions its ellipsis stands for,
// -1 when the caller does not know yet (the text is then only measured).
static Status read_term(const Einsum *sum, const char **text, int dots, Labels *labels,
                        bool *has_ellipsis) {
    *labels = (Labels){0};
    *has_ellipsis = false;
    for (; **text && **text != ',' && **text != '-'; (*text)++) {
        char c = **text;
        if (c == ' ') continue;
        if (isalpha((unsigned char)c)) {
            TRY(push_label(sum, labels, letter_label(c)));
        } else if (strncmp(*text, "...", 3) == 0 && !*has_ellipsis) {
            *has_ellipsis = true;
            *text += 2;
            for (int i = dots - 1; i >= 0; i--) TRY(push_label(sum, labels, LETTERS + i));
        } else {
            char problem[64];
            (void)snprintf(problem, sizeof problem, "unexpected '%c'", c);
            return fail_equation(sum, problem);
        }
    }
    return STATUS_OK;
}

// Records the size of a label; a size of 1 stretches.
static Status note_size(Einsum *sum, int label, int term, int64_t size) {
    int64_t *known = &sum->sizes[label];
    if (*known == -1 || (*known == 1 && size != 1)) {
        *known = size;
        sum->seen_in[label] = term;
    }
    if (*known == size || size == 1) return STATUS_OK;
    const Tensor *here = sum->terms[term].tensor, *there = sum->terms[sum->seen_in[label]].tensor;
    if (label >= LETTERS)
        return fail(STATUS_SHAPE,
                    "einsum: the dimensions under \"...\" differ: %lld in %s and %lld "
                    "in %s",
                    (long long)*known, tensor_type_name(there).text, (long long)size,
                    tensor_type_name(here).text);
    return fail(STATUS_SHAPE, "einsum: letter '%c' is %lld in %s and %lld in %s",
                label_letter(label), (long long)*known, tensor_type_name(there).text,
                (long long)size, tensor_type_name(here).text);
}

static Status read_operand(Einsum *sum, const char **text, int index) {
    Term *term = &sum->terms[index];
    const char *start = *text;
    bool has_ellipsis;
    TRY(read_term(sum, text, -1, &term->labels, &has_ellipsis));
    int rank = tensor_rank(term->tensor), dots = rank - term->labels.count;
    if (has_ellipsis && dots >= 0) {
        *text = start;
        TRY(read_term(sum, text, dots, &term->labels, &has_ellipsis));
        if (dots > sum->ellipsis_rank) sum->ellipsis_rank = dots;
    }
    if (term->labels.count != rank)
        return fail(STATUS_SHAPE, "einsum: \"%s\" names %d dimensions for operand %d, but it is %s",
                    sum->call->attributes->equation, term->labels.count, index + 1,
                    tensor_type_name(term->tensor).text);
    for (int i = 0; i < rank; i++)
        TRY(note_size(sum, term->labels.items[i], index, term->tensor->view.dims[i]));
    return STATUS_OK;
}

// Without "->": the ellipsis, then the letters that occur once, in alphabetical order.
static Status implicit_output(Einsum *sum) {
    for (int i = sum->ellipsis_rank - 1; i >= 0; i--)
        TRY(push_label(sum, &sum->output, LETTERS + i));
    const char *alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (const char *letter = alphabet; *letter; letter++) {
        int label = letter_label(*letter), count = 0;
        for (int t = 0; t < sum->n_terms; t++)
            for (int i = 0; i < sum->terms[t].labels.count; i++)
                count += sum->terms[t].labels.items[i] == label;
        if (count == 1) TRY(push_label(sum, &sum->output, label));
    }
    return STATUS_OK;
}

static Status explicit_output(Einsum *sum, const char *text) {
    bool has_ellipsis;
    TRY(read_term(sum, &text, sum->ellipsis_rank, &sum->output, &has_ellipsis));
    if (*text) return fail_equation(sum, "nothing may follow the output");
    for (int i = 0; i < sum->output.count; i++) {
        int label = sum->output.items[i];
        char problem[64];
        bool known = sum->sizes[label] != -1, twice = false;
        for (int j = 0; j < i; j++) twice = twice || sum->output.items[j] == label;
        if (known && !twice) continue;
        (void)snprintf(problem, sizeof problem, "output letter '%c' %s", label_letter(label),
                       twice ? "occurs twice" : "is in no operand");
        return fail_equation(sum, problem);
    }
    return STATUS_OK;
}

static Status einsum_parse(Einsum *sum) {
    const char *text = sum->call->attributes->equation;
    for (int i = 0; i < LABELS_MAX; i++) sum->sizes[i] = -1;
    for (int i = 0; i < sum->n_terms; i++) {
        TRY(read_operand(sum, &text, i));
        bool last = i + 1 == sum->n_terms;
        if (*text == ',' && !last) {
            text++;
        } else if (*text == ',' || !last) {
            return fail(STATUS_ARITY, "einsum: \"%s\" has %s terms than the %d operands given",
                        sum->call->attributes->equation, last ? "more" : "fewer", sum->n_terms);
        }
    }
    if (!*text) return implicit_output(sum);
    if (strncmp(text, "->", 2) != 0) return fail_equation(sum, "unexpected '-'");
    return explicit_output(sum, text + 2);
}

// A letter that an operand repeats becomes one dimension: the diagonal of its two.
static Status take_diagonals(Term *term) {
    for (int i = 0; i < term->labels.count; i++) {
        for (int j = i + 1; j < term->labels.count; j++) {
            if (term->labels.items[i] != term->labels.items[j]) continue;
            SCOPED_TENSOR(diagonal);
            int label = term->labels.items[i], kept = 0;
            const int64_t *dims = term->tensor->view.dims;
            if (dims[i] != dims[j])
                return fail(STATUS_SHAPE, "einsum: letter '%c' is both %lld and %lld in %s",
                            label_letter(label), (long long)dims[i], (long long)dims[j],
                            tensor_type_name(term->tensor).text);
            TRY(tensor_diagonal(term->tensor, i, j, &diagonal));
            for (int m = 0; m < term->labels.count; m++)
                if (m != i && m != j) term->labels.items[kept++] = term->labels.items[m];
            term->labels.items[kept++] = label;
            term->labels.count = kept;
            tensor_release(term->tensor);
            term->tensor = tensor_retain(diagonal);
            return take_diagonals(term);
        }
    }
    return STATUS_OK;
}

// Whether a label is still wanted by the output or by a term other than a and b.
static bool label_is_needed(const Einsum *sum, int label, int a, int b) {
    if (labels_have(&sum->output, label)) return true;
    for (int t = 0; t < sum->n_terms; t++)
        if (t != a && t != b && labels_have(&sum->terms[t].labels, label)) return true;
    return false;
}

// Sums the dimensions of a term that nobody else names, and stretches those of size 1.
static Status reduce_term(const Einsum *sum, Term *term, int a, int b) {
    Labels kept = {0};
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dims)};
    const Labels *partner = b >= 0 ? &sum->terms[term == &sum->terms[a] ? b : a].labels : NULL;
    Shape shape = tensor_shape(term->tensor);
    for (int i = 0; i < term->labels.count; i++) {
        int label = term->labels.items[i];
        shape.dims[i] = sum->sizes[label];
        if (label_is_needed(sum, label, a, b) || (partner && labels_have(partner, label)))
            kept.items[kept.count++] = label;
        else
            attributes.dims.dims[attributes.dims.rank++] = i;
    }
    SCOPED_TENSOR(wide);
    TRY(tensor_broadcast_to(term->tensor, &shape, &wide));
    tensor_release(term->tensor);
    term->tensor = tensor_retain(wide);
    if (attributes.dims.rank == 0) return STATUS_OK;
    SCOPED_TENSOR(total);
    TRY(op_with(OP_sum_dims, &wide, 1, &attributes, &total));
    tensor_release(term->tensor);
    term->tensor = tensor_retain(total);
    term->labels = kept;
    return STATUS_OK;
}

// The tensor with its dimensions in the order of `labels`; every label is one of its own.
static Status permute_to(const Term *term, const Labels *labels, Tensor **out) {
    Shape order = {.rank = labels->count};
    for (int i = 0; i < labels->count; i++)
        for (int j = 0; j < term->labels.count; j++)
            if (term->labels.items[j] == labels->items[i]) order.dims[i] = j;
    return tensor_permute(term->tensor, &order, out);
}

// Labels of a pair by their role in the product.
typedef struct Roles {
    Labels batch, only_a, only_b, inner;
} Roles;

static Roles find_roles(const Einsum *sum, int a, int b) {
    Roles roles = {0};
    const Labels *left = &sum->terms[a].labels, *right = &sum->terms[b].labels;
    for (int i = 0; i < left->count; i++) {
        int label = left->items[i];
        Labels *role = !labels_have(right, label)          ? &roles.only_a
                       : label_is_needed(sum, label, a, b) ? &roles.batch
                                                           : &roles.inner;
        role->items[role->count++] = label;
    }
    for (int i = 0; i < right->count; i++)
        if (!labels_have(left, right->items[i]))
            roles.only_b.items[roles.only_b.count++] = right->items[i];
    return roles;
}

static int64_t labels_size(const Einsum *sum, const Labels *labels) {
    double size = 1;
    for (int i = 0; i < labels->count; i++) size *= (double)sum->sizes[labels->items[i]];
    return size < 9e18 ? (int64_t)size : INT64_MAX;
}

// A term as [batch, rows, columns] for the matrix product.
static Status as_matrices(const Einsum *sum, const Term *term, const Labels *const *groups,
                          Tensor **out) {
    Labels order = {0};
    Shape shape = {.rank = 3};
    for (int g = 0; g < 3; g++) {
        shape.dims[g] = labels_size(sum, groups[g]);
        for (int i = 0; i < groups[g]->count; i++) order.items[order.count++] = groups[g]->items[i];
    }
    SCOPED_TENSOR(permuted);
    TRY(permute_to(term, &order, &permuted));
    return tensor_reshape(permuted, &shape, out);
}

static Status join_labels(const Einsum *sum, const Roles *roles, Labels *out) {
    const Labels *groups[3] = {&roles->batch, &roles->only_a, &roles->only_b};
    *out = (Labels){0};
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < groups[g]->count; i++) TRY(push_label(sum, out, groups[g]->items[i]));
    return STATUS_OK;
}

// Terms a and b become one in a's place; b's place is taken by the last term.
static Status contract(Einsum *sum, int a, int b) {
    TRY(reduce_term(sum, &sum->terms[a], a, b));
    TRY(reduce_term(sum, &sum->terms[b], a, b));
    Roles roles = find_roles(sum, a, b);
    const Labels *left_groups[3] = {&roles.batch, &roles.only_a, &roles.inner};
    const Labels *right_groups[3] = {&roles.batch, &roles.inner, &roles.only_b};
    Labels labels;
    SCOPED_TENSOR(left);
    SCOPED_TENSOR(right);
    SCOPED_TENSOR(product);
    SCOPED_TENSOR(result);
    TRY(join_labels(sum, &roles, &labels));
    TRY(as_matrices(sum, &sum->terms[a], left_groups, &left));
    TRY(as_matrices(sum, &sum->terms[b], right_groups, &right));
    TRY(matrix_product(sum->call, left, right, &product));
    Shape shape = {.rank = labels.count};
    for (int i = 0; i < labels.count; i++) shape.dims[i] = sum->sizes[labels.items[i]];
    TRY(tensor_reshape(product, &shape, &result));
    tensor_release(sum->terms[a].tensor);
    tensor_release(sum->terms[b].tensor);
    sum->terms[a] = (Term){.tensor = tensor_retain(result), .labels = labels};
    sum->terms[b] = sum->terms[--sum->n_terms];
    return STATUS_OK;
}

// The pair whose product is smallest.
static void choose_pair(const Einsum *sum, int *best_a, int *best_b) {
    double best = INFINITY;
    *best_a = 0;
    *best_b = 1;
    for (int a = 0; a < sum->n_terms; a++)
        for (int b = a + 1; b < sum->n_terms; b++) {
            Roles roles = find_roles(sum, a, b);
            double size = (double)labels_size(sum, &roles.batch) *
                          (double)labels_size(sum, &roles.only_a) *
                          (double)labels_size(sum, &roles.only_b);
            if (size >= best) continue;
            best = size;
            *best_a = a;
            *best_b = b;
        }
}

static Status einsum_run(Einsum *sum, Tensor **out) {
    TRY(einsum_parse(sum));
    for (int i = 0; i < sum->n_terms; i++) TRY(take_diagonals(&sum->terms[i]));
    while (sum->n_terms > 1) {
        int a, b;
        choose_pair(sum, &a, &b);
        TRY(contract(sum, a, b));
    }
    TRY(reduce_term(sum, &sum->terms[0], 0, -1));
    return permute_to(&sum->terms[0], &sum->output, out);
}

Status op_run_einsum(const OpCall *call, Tensor **results) {
    if (call->n_many < 1 || call->n_many > OPERANDS_MAX)
        return fail(STATUS_ARITY, "einsum takes 1 to %d operands, not %d", OPERANDS_MAX,
                    call->n_many);
    Einsum sum = {.call = call};
    Status status = STATUS_OK;
    for (int i = 0; i < call->n_many && status == STATUS_OK; i++) {
        status = op_input_tensor(&call->many[i], &sum.terms[i].tensor);
        if (status == STATUS_OK) sum.n_terms++;
    }
    if (status == STATUS_OK) status = einsum_run(&sum, results);
    einsum_release(&sum);
    return status;
}
