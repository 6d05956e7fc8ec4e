// Gradient rules of selecting and placing by index tensors.
#include "tensor/gradient/rules.h"
#include "tensor/index.h"

#define RULE(name) Status rule_##name(Gradient *g)

static OpAttributes along(int64_t dim) {
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(dim);
    attributes.dim = dim;
    return attributes;
}

// Zeros with up added where it was read.
static Status give_back(Gradient *g, Term index, int64_t dim) {
    OpAttributes attributes = along(dim);
    Term inputs[3] = {term_filled(g, 0, 0), index, gradient_up(g)};
    gradient_give(g, 0, term_op(g, OP_scatter_add, inputs, 3, &attributes));
    return g->status;
}

RULE(gather) {
    return give_back(g, gradient_input(g, 1), g->attributes->dim);
}

// Whole slices by a 1-D index, which is input 1; kept: the dimension.
static Status rule_gather_slices(Gradient *g) {
    return give_back(g, gradient_input(g, 1), *(const int *)g->kept);
}
const GradientInfo gradient_gather_slices = {
    .name = "index_select", .rule = rule_gather_slices, .saves = {SAVE_Y, GIVES_NONE, GIVES_NONE}};

// The numbers 0, 1, ... in a shape.
static Term numbered(Gradient *g, const Shape *shape) {
    OpAttributes attributes;
    ASSERT(shape->rank >= 0 && shape->rank <= RANK_MAX);
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) count *= shape->dims[i];
    attributes.given = ATTRIBUTE_BIT(stop) | ATTRIBUTE_BIT(dtype) | ATTRIBUTE_BIT(device);
    attributes.stop = (Scalar){.dtype = DTYPE_INT64, .as.i = count};
    attributes.dtype = DTYPE_INT64;
    attributes.device = g->incoming[0]->device;
    return term_reshape(g, term_op(g, OP_arange, NULL, 0, &attributes), shape);
}

static Term blank_board(Gradient *g) {
    OpAttributes attributes;
    attributes.given =
        ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(value) | ATTRIBUTE_BIT(dtype) | ATTRIBUTE_BIT(device);
    attributes.shape = tensor_shape(g->incoming[0]);
    attributes.value = (Scalar){.dtype = DTYPE_INT64};
    attributes.dtype = DTYPE_INT64;
    attributes.device = g->incoming[0]->device;
    return term_op(g, OP_full, NULL, 0, &attributes);
}

// Where one place was written twice the last number stays, and only that has a gradient: each
// number's own is written as the numbers were, and who finds it there again has stayed.
static Term of_those_that_stayed(Gradient *g, Term part, Term index,
                                 const OpAttributes *attributes) {
    Shape shape = term_shape(g, part);
    Term own = numbered(g, &shape);
    Term writing[3] = {blank_board(g), index, own};
    Term reading[2] = {term_op(g, OP_scatter, writing, 3, attributes), index};
    Term found = term_op(g, OP_gather, reading, 2, attributes);
    return term_where(g, term_binary(g, OP_eq, found, own), part, term_number(g, 0));
}

RULE(scatter) {
    if (gradient_wants(g, 0)) {
        OpAttributes attributes = along(g->attributes->dim);
        Term inputs[3] = {gradient_up(g), gradient_input(g, 1), term_number(g, 0)};
        gradient_give(g, 0, term_op(g, OP_scatter, inputs, 3, &attributes));
    }
    if (!gradient_wants(g, 2)) return g->status;
    OpAttributes attributes = along(g->attributes->dim);
    Term index = gradient_input(g, 1), inputs[2] = {gradient_up(g), index};
    Term part = term_op(g, OP_gather, inputs, 2, &attributes);
    gradient_give(g, 2, of_those_that_stayed(g, part, index, &attributes));
    return g->status;
}

RULE(scatter_add) {
    gradient_give(g, 0, gradient_up(g));
    if (!gradient_wants(g, 2)) return g->status;
    OpAttributes attributes = along(g->attributes->dim);
    Term inputs[2] = {gradient_up(g), gradient_input(g, 1)};
    gradient_give(g, 2, term_op(g, OP_gather, inputs, 2, &attributes));
    return g->status;
}

// --- assignment to a part

static bool picks_by_number(const IndexItems *items) {
    ASSERT(items->count >= 0 && items->count <= INDEX_ITEMS_MAX);
    for (int i = 0; i < items->count; i++)
        if (items->items[i].kind == INDEX_TENSOR &&
            tensor_dtype(items->items[i].tensor) != DTYPE_BOOL)
            return true;
    return false;
}

static Term read_part(Gradient *g, Tensor *x, const IndexItems *items) {
    Tensor *part = NULL;
    Status status = x ? index_get(x, items->items, items->count, &part) : g->status;
    return term_take(g, status, &part);
}

static Term with_part(Gradient *g, Tensor *x, const IndexItems *items, OpInput value) {
    if (!x) return (Term){0};
    Tensor *changed = tensor_retain(x);
    Status status = index_set(&changed, items->items, items->count, value, false);
    if (status != STATUS_OK) tensor_release(changed);
    return term_take(g, status, &changed);
}

// As of_those_that_stayed.
static Term of_the_last(Gradient *g, Term part, const IndexItems *items) {
    Shape shape = term_shape(g, part);
    Term own = numbered(g, &shape), board = blank_board(g);
    Tensor *numbers = term_tensor(g, own);
    if (!numbers) return (Term){0};
    Term written = with_part(g, term_tensor(g, board), items, op_tensor(numbers));
    Term found = read_part(g, term_tensor(g, written), items);
    return term_where(g, term_binary(g, OP_eq, found, own), part, term_number(g, 0));
}

static Status rule_assignment(Gradient *g) {
    const IndexItems *kept = g->kept;
    if (gradient_wants(g, 0)) gradient_give(g, 0, with_part(g, g->incoming[0], kept, op_float(0)));
    if (gradient_wants(g, 1)) {
        Term part = read_part(g, g->incoming[0], kept);
        gradient_give(g, 1, picks_by_number(kept) ? of_the_last(g, part, kept) : part);
    }
    return g->status;
}
const GradientInfo gradient_assignment = {.name = "assignment", .rule = rule_assignment};
