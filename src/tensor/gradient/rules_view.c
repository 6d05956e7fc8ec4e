// Gradient rules of views and copies: what reads a part of a tensor gives its gradient to that
// part.
#include "tensor/dtype.h"
#include "tensor/gradient/custom.h"
#include "tensor/gradient/remake.h"
#include "tensor/index.h"
#include "tensor/join.h"

static Status rule_same(Gradient *g) {
    gradient_give(g, 0, gradient_up(g));
    return g->status;
}

static Status rule_reshape(Gradient *g) {
    Shape shape = gradient_shape(g, 0);
    gradient_give(g, 0, term_reshape(g, gradient_up(g), &shape));
    return g->status;
}

static Status rule_permute(Gradient *g) {
    const Shape *order = g->kept;
    Shape inverse = {.rank = order->rank};
    for (int i = 0; i < order->rank; i++) inverse.dims[order->dims[i]] = i;
    gradient_give(g, 0, term_permute(g, gradient_up(g), &inverse));
    return g->status;
}

TensorView tape_dense_view(const Tensor *x) {
    TensorView view = x->view;
    int64_t stride = 1;
    view.offset = 0;
    for (int i = view.rank - 1; i >= 0; i--) {
        view.strides[i] = stride;
        stride *= view.dims[i] ? view.dims[i] : 1;
    }
    return view;
}

// `part` of a tensor that is contiguous.
static Tensor *view_part(Tensor *dense, const TensorView *part) {
    TensorView view = *part;
    view.offset += dense->view.offset;
    view.dtype = tensor_dtype(dense);
    return tensor_view_of(dense, &view);
}

static Status take_part(Tensor *x, const TensorView *part, Tensor **out) {
    SCOPED_TENSOR(dense);
    TRY(tensor_contiguous(x, &dense));
    *out = view_part(dense, part);
    if (tape_follows(dense)) tape_record_part(dense, part, *out);
    return STATUS_OK;
}

// Zeros of an input's shape and dtype.
static Status zeros_like_input(const GradientInput *input, Device *device, Tensor **out) {
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(dtype) | ATTRIBUTE_BIT(device);
    attributes.shape = input->shape;
    attributes.dtype = input->dtype;
    attributes.device = device;
    return op_with(OP_zeros, NULL, 0, &attributes, out);
}

// Nobody but the slot holds these numbers afterwards, and they lie contiguously.
static Status make_own(Tensor **slot) {
    Tensor *x = *slot, *copy;
    bool own = x->counted.refs == 1 && !x->learnable && x->view.buffer &&
               buffer_is_unique(x->view.buffer) && tensor_is_contiguous(x);
    if (own) return STATUS_OK;
    TRY(tensor_clone(x, &copy));
    tensor_release(x);
    *slot = copy;
    return STATUS_OK;
}

// Of whole + piece at a part.
static Status rule_added_part(Gradient *g) {
    gradient_give(g, 0, gradient_up(g));
    if (!gradient_wants(g, 1)) return g->status;
    Tensor *piece = NULL;
    Status status = take_part(g->incoming[0], g->kept, &piece);
    gradient_give(g, 1, term_take(g, status, &piece));
    return g->status;
}

static void record_added_part(Tensor **whole, Tensor *piece, const TensorView *part) {
    static const GradientInfo info = {.name = "slice", .rule = rule_added_part};
    TapeRecord entry = tape_begin(&info, (Tensor *const[]){*whole, piece}, 2);
    tape_keep(&entry, part, sizeof *part);
    (void)tape_end(&entry, STATUS_OK, whole); // cannot fail: the status goes through
}

Status gradient_add_part(TapeNode *node, Tensor *piece) {
    const GradientInput *input = &node->inputs[0];
    Tensor **whole = &input->producer->incoming[input->output];
    SCOPED_TENSOR(same);
    SCOPED_TENSOR(inside);
    TRY(tensor_cast(piece, input->dtype, &same));
    bool first = !*whole;
    TRY(first ? zeros_like_input(input, piece->device, whole) : make_own(whole));
    inside = view_part(*whole, node->kept);
    TRY(first ? op_copy(same, inside) : op_add_view(&same->view, &inside->view, "slice"));
    record_added_part(whole, same, node->kept);
    return STATUS_OK;
}

static Status rule_place(Gradient *g) {
    Tensor *result = NULL;
    Status status = take_part(g->incoming[0], g->kept, &result);
    gradient_give(g, 0, term_take(g, status, &result));
    return g->status;
}

// --- computing again

static Shape shape_of_result(const TapeNode *node) {
    const TensorView *view = &node->made[0].view;
    Shape shape = {.rank = view->rank};
    memcpy(shape.dims, view->dims, (size_t)view->rank * sizeof *view->dims);
    return shape;
}

static Status reshape_again(const TapeNode *node, Tensor *const *inputs, Tensor **result) {
    Shape shape = shape_of_result(node);
    return tensor_reshape(inputs[0], &shape, result);
}

static Status permute_again(const TapeNode *node, Tensor *const *inputs, Tensor **result) {
    return tensor_permute(inputs[0], node->kept, result);
}

static Status cast_again(const TapeNode *node, Tensor *const *inputs, Tensor **result) {
    DType dtype = node->made[0].view.dtype;
    if (dtype == tensor_dtype(inputs[0])) return tensor_clone(inputs[0], result);
    return tensor_cast(inputs[0], dtype, result);
}

static Status part_again(const TapeNode *node, Tensor *const *inputs, Tensor **result) {
    return take_part(inputs[0], node->kept, result);
}

// --- recording

static void record(const GradientInfo *info, Tensor *x, const void *kept, size_t bytes,
                   Tensor *out) {
    if (!dtype_is_float(tensor_dtype(out))) return;
    TapeRecord entry = tape_begin(info, &x, 1);
    if (kept) tape_keep(&entry, kept, bytes);
    (void)tape_end(&entry, STATUS_OK, &out); // cannot fail: the status goes through
}

void tape_record_reshape(Tensor *x, Tensor *out) {
    static const GradientInfo info = {
        .name = "reshape", .rule = rule_reshape, .again = reshape_again, .is_view = true};
    record(&info, x, NULL, 0, out);
}
void tape_record_permute(Tensor *x, const Shape *order, Tensor *out) {
    static const GradientInfo info = {
        .name = "permute", .rule = rule_permute, .again = permute_again, .is_view = true};
    record(&info, x, order, sizeof *order, out);
}
void tape_record_broadcast(Tensor *x, Tensor *out) {
    static const GradientInfo info = {.name = "broadcast_to", .rule = rule_same};
    record(&info, x, NULL, 0, out);
}
void tape_record_cast(Tensor *x, Tensor *out) {
    static const GradientInfo info = {.name = "as", .rule = rule_same, .again = cast_again};
    record(&info, x, NULL, 0, out);
}
void tape_record_part(Tensor *x, const TensorView *part, Tensor *out) {
    static const GradientInfo info = {
        .name = "slice", .kind = GRADIENT_PART, .again = part_again, .is_view = true};
    record(&info, x, part, sizeof *part, out);
}
void tape_record_place(Tensor *x, const TensorView *part, Tensor *out) {
    static const GradientInfo info = {.name = "pad", .rule = rule_place};
    record(&info, x, part, sizeof *part, out);
}

// --- joining and repeating

static Status rule_concat(Gradient *g) {
    int dim = *(const int *)g->kept;
    int64_t start = 0;
    for (int i = 0; i < g->n_inputs; i++) {
        int64_t stop = start + gradient_shape(g, i).dims[dim];
        if (gradient_wants(g, i)) {
            Tensor *piece = NULL;
            Status status = tensor_slice(g->incoming[0], dim, start, stop, &piece);
            g->n_terms = 1; // each piece is given away before the next one
            Term term = term_take(g, status, &piece);
            gradient_give(g, i, term);
            for (int t = 1; t < g->n_terms; t++) tensor_release(g->terms[t].tensor);
            g->n_terms = 1;
        }
        start = stop;
    }
    ASSERT(start == g->incoming[0]->view.dims[dim]);
    return g->status;
}
const GradientInfo gradient_concat = {.name = "concat", .rule = rule_concat};

// The repetition was along a dimension of its own, which is summed; kept: {dim, times, each}.
static Status rule_repeat(Gradient *g) {
    const int64_t *kept = g->kept;
    Shape shape = gradient_shape(g, 0), split = {.rank = shape.rank + 1};
    int dim = (int)kept[0], repetition = kept[2] ? dim + 1 : dim;
    bool gone[RANK_MAX + 1] = {false};
    gone[repetition] = true;
    for (int i = 0, from = 0; i < split.rank; i++)
        split.dims[i] = i == repetition ? kept[1] : shape.dims[from++];
    Term sum = term_sum_kept(g, term_reshape(g, gradient_up(g), &split), gone);
    gradient_give(g, 0, term_reshape(g, sum, &shape));
    return g->status;
}
const GradientInfo gradient_repeat = {.name = "repeat", .rule = rule_repeat};

static Status rule_device(Gradient *g) {
    Tensor *back = NULL;
    Status status = tensor_to_device(g->incoming[0], *(Device *const *)g->kept, &back);
    gradient_give(g, 0, term_take(g, status, &back));
    return g->status;
}
const GradientInfo gradient_device = {.name = "to", .rule = rule_device};

// --- gradients that a program gives itself

static Status rule_custom(Gradient *g) {
    const TapeCustom *custom = g->kept;
    ASSERT(g->n_inputs <= TAPE_CUSTOM_INPUTS);
    Tensor *inputs[TAPE_CUSTOM_INPUTS], *gradients[TAPE_CUSTOM_INPUTS] = {NULL};
    for (int i = 0; i < g->n_inputs; i++) inputs[i] = term_tensor(g, gradient_input(g, i));
    Tensor *up = term_tensor(g, gradient_up(g));
    if (g->status != STATUS_OK) return g->status;
    gradient_fail(g, custom->run(custom->data, inputs, g->n_inputs, up, gradients));
    for (int i = 0; i < g->n_inputs; i++) {
        if (g->status == STATUS_OK && gradients[i])
            gradient_give(g, i, term_own(g, gradients[i]));
        else
            tensor_release(gradients[i]);
    }
    return g->status;
}

static void release_custom(void *kept) {
    const TapeCustom *custom = kept;
    custom->release(custom->data);
}

void tape_record_custom(const TapeCustom *custom, Tensor *const *inputs, int n_inputs,
                        Tensor **output) {
    enum { ALL = SAVE_X | SAVE_Y | SAVE_Z | SAVE_INPUT_3 | SAVE_INPUT_4 | SAVE_INPUT_5 };
    static const GradientInfo info = {
        .name = "custom_grad", .rule = rule_custom, .saves = {ALL, ALL, ALL}};
    TapeRecord record = tape_begin(&info, inputs, n_inputs);
    if (record.node)
        tape_keep_copy(&record, custom, sizeof *custom, release_custom);
    else
        custom->release(custom->data);
    (void)tape_end(&record, STATUS_OK, output); // the status goes through
}
