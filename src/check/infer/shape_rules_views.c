// Rules of creation, views, joins and reductions.
#include "check/infer/shape_rule.h"
#include "shape/rules.h"

#define GIVEN_X(x)                                                                                 \
    TensorType x;                                                                                  \
    bool x##_given;                                                                                \
    if (!rule_tensor(call, #x, &x, &x##_given)) return STATUS_OK

// --- creation

static Status create(const RuleCall *call, DType dtype, const Fact **out) {
    const Fact *sizes = rule_argument(call, "shape");
    Shape shape;
    if (!sizes) { // no shape: one number, or that of a declaration
        *out = &fact_any;
        return STATUS_OK;
    }
    if (!rule_sizes(call, sizes, &shape))
        return rule_give(call, rule_dtype(call, dtype), NULL, out);
    for (int i = 0; i < shape.rank; i++)
        if (size_is_known(shape.dims[i]) && shape.dims[i] < 0)
            return fail(STATUS_SHAPE,
                        "%s: dimension %d of the shape is %lld; it must not be negative",
                        call->name, i, (long long)shape.dims[i]);
    return rule_give(call, rule_dtype(call, dtype), &shape, out);
}

Status shape_rule_created(const RuleCall *call, const Fact **out) {
    return create(call, DTYPE_FLOAT32, out);
}
Status shape_rule_created_whole(const RuleCall *call, const Fact **out) {
    return create(call, DTYPE_INT64, out);
}

Status shape_rule_like(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    return rule_give(call, rule_dtype(call, x.dtype), &x.shape, out);
}

Status shape_rule_like_floating(const RuleCall *call, const Fact **out) {
    TensorType x;
    bool given;
    if (!rule_tensor(call, "x", &x, &given) && !rule_tensor(call, "logits", &x, &given))
        return STATUS_OK;
    return rule_give(call, rule_floating(x.dtype), &x.shape, out);
}

static Status give_sizes(const RuleCall *call, DType dtype, int64_t rows, int64_t columns,
                         const Fact **out) {
    Shape shape = {.rank = 2, .dims = {rows, columns}};
    for (int i = 0; i < 2; i++)
        if (size_is_known(shape.dims[i]) && shape.dims[i] < 0) return STATUS_OK;
    return rule_give(call, rule_dtype(call, dtype), &shape, out);
}

Status shape_rule_square(const RuleCall *call, const Fact **out) {
    int64_t n = rule_size(call, "n", SIZE_UNKNOWN);
    return give_sizes(call, DTYPE_FLOAT32, n, n, out);
}

Status shape_rule_positions(const RuleCall *call, const Fact **out) {
    return give_sizes(call, DTYPE_FLOAT32, rule_size(call, "seq", SIZE_UNKNOWN),
                      rule_size(call, "d", SIZE_UNKNOWN), out);
}

Status shape_rule_rope_table(const RuleCall *call, const Fact **out) {
    int64_t head_dim = rule_size(call, "head_dim", SIZE_UNKNOWN);
    return give_sizes(call, DTYPE_FLOAT32, rule_size(call, "max_len", SIZE_UNKNOWN),
                      size_is_known(head_dim) ? head_dim / 2 : SIZE_UNKNOWN, out);
}

static Status give_line(const RuleCall *call, DType dtype, int64_t size, const Fact **out) {
    Shape shape = {.rank = 1, .dims = {size}};
    return rule_give(call, dtype, &shape, out);
}

Status shape_rule_line(const RuleCall *call, const Fact **out) {
    const Fact *x = rule_argument(call, "x");
    return give_line(call, x->kind == FACT_TENSOR ? x->as.tensor.type.dtype : DTYPE_COUNT,
                     SIZE_UNKNOWN, out);
}
Status shape_rule_line_whole(const RuleCall *call, const Fact **out) {
    return give_line(call, DTYPE_INT64, SIZE_UNKNOWN, out);
}
Status shape_rule_linspace(const RuleCall *call, const Fact **out) {
    int64_t n = rule_size(call, "n", SIZE_UNKNOWN);
    if (size_is_known(n) && n < 0) return STATUS_OK;
    return give_line(call, rule_dtype(call, DTYPE_FLOAT32), n, out);
}

Status shape_rule_arange(const RuleCall *call, const Fact **out) {
    const Fact *low = rule_argument(call, "start"), *high = rule_argument(call, "stop");
    const Fact *step = rule_argument(call, "step");
    bool whole = (!low || low->kind == FACT_INT) && high->kind == FACT_INT &&
                 (!step || step->kind == FACT_INT);
    bool floats = (low && low->kind == FACT_FLOAT) || high->kind == FACT_FLOAT ||
                  (step && step->kind == FACT_FLOAT);
    int64_t from = !low ? 0 : (low->kind == FACT_INT ? low->as.integer : SIZE_UNKNOWN);
    int64_t size = SIZE_UNKNOWN;
    bool known = whole && high->known && size_is_known(from) && !step;
    if (known) size = high->as.integer > from ? size_add(high->as.integer, -from) : 0;
    if (!known && whole && !step && from == 0) size = high->as.integer;
    DType dtype = whole ? DTYPE_INT64 : (floats ? DTYPE_FLOAT32 : DTYPE_COUNT);
    return give_line(call, rule_dtype(call, dtype), size, out);
}

static Status add_last(const RuleCall *call, const TensorType *x, int64_t size, DType dtype,
                       const Fact **out) {
    Shape shape = x->shape;
    ASSERT(shape.rank >= 0 && shape.rank <= RANK_MAX);
    if (shape.rank == RANK_MAX) return STATUS_OK;
    shape.dims[shape.rank++] = size;
    return rule_give(call, dtype, &shape, out);
}

Status shape_rule_one_hot(const RuleCall *call, const Fact **out) {
    GIVEN_X(ids);
    return add_last(call, &ids, rule_size(call, "n", SIZE_UNKNOWN), rule_dtype(call, DTYPE_FLOAT32),
                    out);
}
Status shape_rule_padding_mask(const RuleCall *call, const Fact **out) {
    GIVEN_X(lengths);
    return add_last(call, &lengths, rule_size(call, "max_len", SIZE_UNKNOWN),
                    rule_dtype(call, DTYPE_FLOAT32), out);
}

Status shape_rule_triangle(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    TRY(shape_needs_matrix(call->name, &x));
    return rule_give(call, x.dtype, &x.shape, out);
}

Status shape_rule_masks(const RuleCall *call, const Fact **out) {
    GIVEN_X(a);
    GIVEN_X(b);
    Shape shape;
    TRY(shape_broadcast("mul", &a, &b, &shape));
    return rule_give(call, a.dtype == b.dtype ? a.dtype : DTYPE_COUNT, &shape, out);
}

Status shape_rule_multinomial(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    if (x.shape.rank == 0) return STATUS_OK;
    Shape shape = x.shape;
    shape.dims[shape.rank - 1] = rule_size(call, "n", SIZE_UNKNOWN);
    return rule_give(call, DTYPE_INT64, &shape, out);
}

Status shape_rule_tensor(const RuleCall *call, const Fact **out) {
    const Fact *x = rule_argument(call, "x");
    if (x && fact_has_shape(x))
        return rule_give(call, rule_dtype(call, x->as.tensor.type.dtype), &x->as.tensor.type.shape,
                         out);
    *out = &fact_any;
    return STATUS_OK;
}

// --- views

// The sizes given by one parameter as a list, or by another one by one.
static bool wanted_shape(const RuleCall *call, Shape *out) {
    const Fact *shape = rule_argument(call, "shape");
    if (shape) return rule_sizes(call, shape, out);
    if (call->rest_count > RANK_MAX) return false;
    out->rank = (int)call->rest_count;
    for (int i = 0; i < out->rank; i++) {
        const Fact *fact = call->rest[i].fact;
        out->dims[i] = fact->kind == FACT_INT ? fact->as.integer : SIZE_UNKNOWN;
    }
    return true;
}

Status shape_rule_reshape(const RuleCall *call, const Fact **out) {
    TensorType x;
    bool given;
    Shape wanted, shape;
    bool known = rule_tensor(call, "x", &x, &given);
    if (!wanted_shape(call, &wanted)) return STATUS_OK;
    if (known) {
        TRY(shape_reshape(&x, &wanted, &shape));
        return rule_give(call, x.dtype, &shape, out);
    }
    for (int i = 0; i < wanted.rank; i++)
        if (wanted.dims[i] == -1) wanted.dims[i] = SIZE_UNKNOWN;
    return rule_give(call, x.dtype, &wanted, out);
}

Status shape_rule_flatten(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int64_t start = rule_size(call, "start", 0), stop = rule_size(call, "stop", -1);
    if (!size_is_known(start) || !size_is_known(stop)) return STATUS_OK;
    Shape shape = {.rank = 1, .dims = {1}};
    if (x.shape.rank == 0) return rule_give(call, x.dtype, &shape, out);
    int first, last;
    TRY(shape_dim(&x, start, &first));
    TRY(shape_dim(&x, stop, &last));
    if (first > last) return STATUS_OK;
    shape.rank = 0;
    for (int i = 0; i < x.shape.rank; i++) {
        if (i > first && i <= last)
            shape.dims[shape.rank - 1] = size_multiply(shape.dims[shape.rank - 1], x.shape.dims[i]);
        else
            shape.dims[shape.rank++] = x.shape.dims[i];
    }
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_squeeze(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    bool one = rule_argument(call, "dim") != NULL;
    int64_t dim = rule_size(call, "dim", SIZE_UNKNOWN);
    int at = 0;
    Shape shape = x.shape;
    if (one && !size_is_known(dim)) return STATUS_OK;
    if (one) TRY(shape_dim(&x, dim, &at));
    for (int i = shape.rank - 1; i >= 0; i--) {
        if (one && i != at) continue;
        if (!size_is_known(shape.dims[i])) return STATUS_OK;
        if (shape.dims[i] == 1) shape_remove_dim(&shape, i);
    }
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_unsqueeze(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int64_t dim = rule_size(call, "dim", SIZE_UNKNOWN);
    int at;
    if (!size_is_known(dim)) return STATUS_OK;
    TRY(shape_unsqueeze(&x, dim, &at));
    Shape shape = {.rank = x.shape.rank + 1};
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = i == at ? 1 : x.shape.dims[i < at ? i : i - 1];
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_transpose(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int64_t d0 = rule_size(call, "d0", -2), d1 = rule_size(call, "d1", -1);
    int a, b;
    if (!size_is_known(d0) || !size_is_known(d1)) return STATUS_OK;
    if (x.shape.rank < 2 && d0 == -2 && d1 == -1) return rule_give(call, x.dtype, &x.shape, out);
    TRY(shape_dim(&x, d0, &a));
    TRY(shape_dim(&x, d1, &b));
    Shape shape = x.shape;
    shape.dims[a] = x.shape.dims[b];
    shape.dims[b] = x.shape.dims[a];
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_permute(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    Shape dims, order, shape = {.rank = x.shape.rank};
    if (!rule_sizes(call, rule_argument(call, "dims"), &dims) || !shape_is_known(&dims))
        return STATUS_OK;
    TRY(shape_permute(&x, &dims, &order));
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = x.shape.dims[order.dims[i]];
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_broadcast_to(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    Shape wanted, shape;
    if (!rule_sizes(call, rule_argument(call, "shape"), &wanted)) return STATUS_OK;
    TRY(shape_broadcast_to(&x, &wanted, &shape));
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_dims(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    Shape dims;
    const Fact *given = rule_argument(call, "dims");
    int at;
    if (given && rule_sizes(call, given, &dims))
        for (int i = 0; i < dims.rank; i++)
            if (size_is_known(dims.dims[i])) TRY(shape_dim(&x, dims.dims[i], &at));
    return rule_give(call, x.dtype, &x.shape, out);
}

Status shape_rule_slice_row(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    TRY(shape_slice_row(&x));
    int64_t row = rule_size(call, "row", SIZE_UNKNOWN);
    if (size_is_known(row)) TRY(shape_select(&x, 0, row));
    Shape shape = {.rank = 1, .dims = {SIZE_UNKNOWN}};
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_slice_along(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int64_t dim = rule_size(call, "dim", 0);
    int at;
    if (!size_is_known(dim)) return STATUS_OK;
    TRY(shape_dim(&x, dim, &at));
    Shape shape = x.shape;
    int64_t start = rule_size(call, "start", SIZE_UNKNOWN), size = shape.dims[at];
    int64_t stop = rule_size(call, "stop", SIZE_UNKNOWN);
    bool plain = rule_size(call, "step", 1) == 1 && size_is_known(start) && size_is_known(stop) &&
                 size_is_known(size) && start >= 0 && stop >= start && stop <= size;
    shape.dims[at] = plain ? stop - start : SIZE_UNKNOWN;
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_slice_last(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int64_t dim = rule_size(call, "dim", 0);
    int at;
    if (!size_is_known(dim)) return STATUS_OK;
    TRY(shape_dim(&x, dim, &at));
    TRY(shape_select(&x, at, -1));
    shape_remove_dim(&x.shape, at);
    return rule_give(call, x.dtype, &x.shape, out);
}

Status shape_rule_pad(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    Shape padding, shape = x.shape;
    const Fact *given = rule_argument(call, "padding");
    if (!rule_sizes(call, given, &padding)) return STATUS_OK;
    int pairs = padding.rank / 2;
    if (padding.rank == 1)
        for (int i = 0; i < shape.rank; i++)
            shape.dims[i] = size_add(shape.dims[i], size_multiply(2, padding.dims[0]));
    else if (padding.rank % 2 == 0 && pairs <= shape.rank)
        for (int i = 0; i < pairs; i++) {
            int64_t *size = &shape.dims[shape.rank - pairs + i];
            *size = size_add(*size, size_add(padding.dims[2 * i], padding.dims[2 * i + 1]));
        }
    else
        return STATUS_OK;
    for (int i = 0; i < padding.rank; i++)
        if (size_is_known(padding.dims[i]) && padding.dims[i] < 0) return STATUS_OK;
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_repeat(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    Shape times, shape = x.shape;
    if (!rule_sizes(call, rule_argument(call, "repeats"), &times)) return STATUS_OK;
    if (rule_argument(call, "dim")) {
        int64_t dim = rule_size(call, "dim", SIZE_UNKNOWN);
        int at;
        if (!size_is_known(dim) || times.rank != 1) return STATUS_OK;
        TRY(shape_dim(&x, dim, &at));
        shape.dims[at] = size_multiply(shape.dims[at], times.dims[0]);
        return rule_give(call, x.dtype, &shape, out);
    }
    while (shape.rank < times.rank) {
        for (int i = shape.rank; i > 0; i--) shape.dims[i] = shape.dims[i - 1];
        shape.dims[0] = 1;
        shape.rank++;
    }
    for (int i = 0; i < times.rank; i++) {
        int64_t *size = &shape.dims[shape.rank - times.rank + i];
        *size = size_multiply(*size, times.dims[i]);
    }
    return rule_give(call, x.dtype, &shape, out);
}

// --- joins

typedef struct Pieces {
    const Fact **items;
    size_t count;
    int64_t dim;
} Pieces;

// What is joined: a list, or arguments of which a last plain int is the dimension.
static bool read_pieces(const RuleCall *call, Pieces *out) {
    const Fact *list = rule_argument(call, "tensors");
    out->dim = rule_size(call, "dim", 0);
    if (list) {
        bool known = (list->kind == FACT_LIST || list->kind == FACT_TUPLE) &&
                     infer_members_known(call->in, list);
        if (known) {
            out->items = list->as.list.items;
            out->count = list->as.list.count;
        }
        return known && size_is_known(out->dim);
    }
    out->items = arena_allocate(&call->in->arena, (call->rest_count + 1) * sizeof *out->items);
    out->count = call->rest_count;
    for (size_t i = 0; i < out->count; i++) out->items[i] = call->rest[i].fact;
    return out->count > 0 && size_is_known(out->dim) && !fact_is_number(out->items[out->count - 1]);
}

static Status join(const RuleCall *call, bool stacks, const Fact **out) {
    Pieces pieces = {0};
    TensorType first = {.dtype = DTYPE_COUNT};
    int at = 0;
    if (!read_pieces(call, &pieces) || pieces.count == 0) return STATUS_OK;
    if (!rule_type(pieces.items[0], &first)) return STATUS_OK;
    if (!stacks && first.shape.rank == 0) {
        fail(STATUS_SHAPE, "cannot concat tensors of rank 0");
        return fail_help("stack(...) makes a vector of them");
    }
    if (stacks)
        TRY(shape_unsqueeze(&first, pieces.dim, &at));
    else
        TRY(shape_dim(&first, pieces.dim, &at));
    TensorType result = first;
    for (size_t i = 1; i < pieces.count; i++) {
        TensorType next;
        if (!rule_type(pieces.items[i], &next)) return STATUS_OK;
        TRY(stacks ? shape_stack(&first, &next) : shape_concat(&first, &next, at));
        if (!stacks) result.shape.dims[at] = size_add(result.shape.dims[at], next.shape.dims[at]);
        bool known = result.dtype != DTYPE_COUNT && next.dtype != DTYPE_COUNT;
        result.dtype = known ? dtype_promote(result.dtype, next.dtype) : DTYPE_COUNT;
    }
    if (stacks) {
        for (int i = result.shape.rank++; i > at; i--)
            result.shape.dims[i] = result.shape.dims[i - 1];
        result.shape.dims[at] = (int64_t)pieces.count;
    }
    return rule_give(call, result.dtype, &result.shape, out);
}

// One tensor is a list of its rows.
static Status concat_one(const RuleCall *call, const TensorType *x, int64_t dim, const Fact **out) {
    TensorType row = *x;
    int at;
    shape_remove_dim(&row.shape, 0);
    TRY(shape_dim(&row, dim, &at));
    row.shape.dims[at] = size_multiply(row.shape.dims[at], x->shape.dims[0]);
    return rule_give(call, x->dtype, &row.shape, out);
}

// Whether one tensor is given where several are written one by one.
static bool is_one(const RuleCall *call, Pieces *pieces) {
    return call->rest && read_pieces(call, pieces) && pieces->count == 1;
}

Status shape_rule_concat(const RuleCall *call, const Fact **out) {
    Pieces pieces = {0};
    TensorType first;
    bool one = is_one(call, &pieces);
    if (one && !rule_type(pieces.items[0], &first)) return STATUS_OK;
    if (one && first.shape.rank > 1) return concat_one(call, &first, pieces.dim, out);
    return join(call, false, out);
}

static Status stack_one(const RuleCall *call, const TensorType *x, int64_t dim, const Fact **out) {
    Shape shape = x->shape;
    int at;
    TRY(shape_dim(x, dim, &at));
    ASSERT(at >= 0 && at < x->shape.rank);
    for (int i = 0; i < at; i++) shape.dims[i] = x->shape.dims[i + 1];
    shape.dims[at] = x->shape.dims[0];
    return rule_give(call, x->dtype, &shape, out);
}

Status shape_rule_stack(const RuleCall *call, const Fact **out) {
    Pieces pieces = {0};
    TensorType first;
    bool one = is_one(call, &pieces);
    if (one && !rule_type(pieces.items[0], &first)) return STATUS_OK;
    if (one && first.shape.rank > 0) return stack_one(call, &first, pieces.dim, out);
    return join(call, true, out);
}

static const Fact *list_of_parts(const RuleCall *call, const TensorType *x, int at,
                                 const int64_t *sizes, size_t count) {
    ASSERT(at >= 0 && at < x->shape.rank);
    Fact *list = fact_new(&call->in->arena, FACT_LIST);
    list->known = true;
    list->epoch = call->in->epoch;
    list->as.list.count = count;
    list->as.list.items = arena_allocate(&call->in->arena, (count + 1) * sizeof(Fact *));
    for (size_t i = 0; i < count; i++) {
        Shape shape = x->shape;
        shape.dims[at] = sizes[i];
        list->as.list.items[i] = fact_tensor(&call->in->arena, x->dtype, &shape);
    }
    return list;
}

enum { PIECES_MAX = 64 };

static Status give_evenly(const RuleCall *call, const TensorType *x, int at, int64_t size,
                          const Fact **out) {
    int64_t total = x->shape.dims[at], sizes[PIECES_MAX];
    if (!size_is_known(total) || !size_is_known(size) || size <= 0) return STATUS_OK;
    int64_t count = total == 0 ? 1 : (total - 1) / size + 1;
    if (count > PIECES_MAX) return STATUS_OK;
    for (int64_t i = 0; i < count; i++)
        sizes[i] = total - i * size < size ? total - i * size : size;
    *out = list_of_parts(call, x, at, sizes, (size_t)count);
    return STATUS_OK;
}

Status shape_rule_split(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int64_t dim = rule_size(call, "dim", 0);
    int at;
    Shape sizes;
    if (!size_is_known(dim)) return STATUS_OK;
    TRY(shape_dim(&x, dim, &at));
    if (!rule_sizes(call, rule_argument(call, "size"), &sizes) || !shape_is_known(&sizes))
        return STATUS_OK;
    if (sizes.rank == 1) return give_evenly(call, &x, at, sizes.dims[0], out);
    TRY(shape_split(&x, at, sizes.dims, (size_t)sizes.rank));
    *out = list_of_parts(call, &x, at, sizes.dims, (size_t)sizes.rank);
    return STATUS_OK;
}

Status shape_rule_chunk(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int64_t dim = rule_size(call, "dim", 0), n = rule_size(call, "n", SIZE_UNKNOWN);
    int at;
    if (!size_is_known(dim)) return STATUS_OK;
    TRY(shape_dim(&x, dim, &at));
    int64_t total = x.shape.dims[at];
    if (!size_is_known(n) || n <= 0 || !size_is_known(total)) return STATUS_OK;
    return give_evenly(call, &x, at, total == 0 ? 1 : (total - 1) / n + 1, out);
}
