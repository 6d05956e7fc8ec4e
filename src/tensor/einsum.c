// Einstein sums: einsum("bij,bjk->bik", a, b). The text becomes a list of labels per operand;
// operands are contracted two at a time, the smallest intermediate first, each time by one matrix
// product.
#include <math.h>

#include "shape/einsum.h"
#include "tensor/matrix.h"

typedef struct Term {
    Tensor *tensor; // owned
    Labels labels;
} Term;

typedef struct Einsum {
    const OpCall *call;
    int n_terms; // left
    Term terms[OPERANDS_MAX];
    EinsumPlan plan;
} Einsum;

static void einsum_release(Einsum *sum) {
    for (int i = 0; i < sum->n_terms; i++) tensor_release(sum->terms[i].tensor);
}

static bool labels_have(const Labels *labels, int label) {
    ASSERT(labels->count >= 0 && labels->count <= RANK_MAX);
    for (int i = 0; i < labels->count; i++)
        if (labels->items[i] == label) return true;
    return false;
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
                            einsum_letter(label), (long long)dims[i], (long long)dims[j],
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
    ASSERT(a >= 0 && a < sum->n_terms && b < sum->n_terms);
    if (labels_have(&sum->plan.output, label)) return true;
    for (int t = 0; t < sum->n_terms; t++)
        if (t != a && t != b && labels_have(&sum->terms[t].labels, label)) return true;
    return false;
}

// Sums the dimensions of a term that nobody else names, and stretches those of size 1.
static Status reduce_term(const Einsum *sum, Term *term, int a, int b) {
    Labels kept = {0};
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dims)};
    ASSERT(a >= 0 && a < sum->n_terms && b < sum->n_terms);
    const Labels *partner = b >= 0 ? &sum->terms[term == &sum->terms[a] ? b : a].labels : NULL;
    Shape shape = tensor_shape(term->tensor);
    for (int i = 0; i < term->labels.count; i++) {
        int label = term->labels.items[i];
        shape.dims[i] = sum->plan.sizes[label];
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
    ASSERT(labels->count == term->labels.count);
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
    ASSERT(a != b && a >= 0 && b >= 0);
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
    for (int i = 0; i < labels->count; i++) size *= (double)sum->plan.sizes[labels->items[i]];
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

static Status join_label(const Einsum *sum, Labels *labels, int label) {
    if (labels->count == RANK_MAX)
        return fail(STATUS_VALUE, "einsum: \"%s\": more than 8 dimensions in one term",
                    sum->plan.equation);
    labels->items[labels->count++] = label;
    return STATUS_OK;
}

static Status join_labels(const Einsum *sum, const Roles *roles, Labels *out) {
    const Labels *groups[3] = {&roles->batch, &roles->only_a, &roles->only_b};
    *out = (Labels){0};
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < groups[g]->count; i++) TRY(join_label(sum, out, groups[g]->items[i]));
    return STATUS_OK;
}

// Terms a and b become one in a's place; b's place is taken by the last term.
static Status contract(Einsum *sum, int a, int b) {
    ASSERT(a != b && a < sum->n_terms && b < sum->n_terms);
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
    for (int i = 0; i < labels.count; i++) shape.dims[i] = sum->plan.sizes[labels.items[i]];
    TRY(tensor_reshape(product, &shape, &result));
    tensor_release(sum->terms[a].tensor);
    tensor_release(sum->terms[b].tensor);
    sum->terms[a] = (Term){.tensor = tensor_retain(result), .labels = labels};
    sum->terms[b] = sum->terms[--sum->n_terms];
    return STATUS_OK;
}

// The pair whose product is smallest.
static void choose_pair(const Einsum *sum, int *best_a, int *best_b) {
    ASSERT(sum->n_terms >= 2);
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
    EinsumPlan *plan = &sum->plan;
    plan->equation = sum->call->attributes->equation;
    plan->n_terms = sum->n_terms;
    for (int i = 0; i < sum->n_terms; i++) plan->types[i] = tensor_type(sum->terms[i].tensor);
    TRY(einsum_parse(plan));
    for (int i = 0; i < sum->n_terms; i++) sum->terms[i].labels = plan->labels[i];
    for (int i = 0; i < sum->n_terms; i++) TRY(take_diagonals(&sum->terms[i]));
    while (sum->n_terms > 1) {
        int a, b;
        choose_pair(sum, &a, &b);
        TRY(contract(sum, a, b));
    }
    TRY(reduce_term(sum, &sum->terms[0], 0, -1));
    return permute_to(&sum->terms[0], &sum->plan.output, out);
}

Status op_run_einsum(const OpCall *call, Tensor **results) {
    if (call->n_many < 1 || call->n_many > OPERANDS_MAX)
        return fail(STATUS_ARITY, "einsum takes 1 to %d operands, not %d", OPERANDS_MAX,
                    call->n_many);
    Einsum sum = {.call = call};
    Status status = STATUS_OK;
    for (int i = 0; i < call->n_many && status == STATUS_OK; i++) {
        status = op_input_tensor(&call->many[i], op_device(call), &sum.terms[i].tensor);
        if (status == STATUS_OK) sum.n_terms++;
    }
    if (status == STATUS_OK) status = einsum_run(&sum, results);
    einsum_release(&sum);
    return status;
}
