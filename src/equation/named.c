// Tensors whose dimensions have indexes: their order, products and reductions. All by operations
// that gradients flow through.
#include "equation/named.h"

#include "tensor/compose.h"
#include "tensor/index.h"

void named_release(Named *named) {
    value_release(named->value);
    named->value = value_none();
}

Status named_check_rank(int count) {
    if (count <= RANK_MAX) return STATUS_OK;
    return fail(STATUS_SHAPE, "this has %d indexes, and a tensor at most %d dimensions", count,
                RANK_MAX);
}

bool named_has(const Named *named, int index) {
    for (int i = 0; i < named->count; i++)
        if (named->indexes[i] == index) return true;
    return false;
}

static int named_dim(const Named *named, int index) {
    for (int i = 0; i < named->count; i++)
        if (named->indexes[i] == index) return i;
    return -1;
}

static Status permute(Tensor *x, const Shape *dims, Tensor **out) {
    bool same = true;
    for (int i = 0; i < dims->rank; i++) same &= dims->dims[i] == i;
    if (same) {
        *out = tensor_retain(x);
        return STATUS_OK;
    }
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dims), .dims = *dims};
    return op_with(OP_permute, &x, 1, &attributes, out);
}

static Status reshape(Tensor *x, const Shape *shape, Tensor **out) {
    if (x->view.rank == shape->rank) {
        *out = tensor_retain(x);
        return STATUS_OK;
    }
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape), .shape = *shape};
    return op_with(OP_reshape, &x, 1, &attributes, out);
}

Status named_arrange(const Named *named, const int *order, int count, Value *out) {
    if (named->count == 0) {
        *out = value_retain(named->value);
        return STATUS_OK;
    }
    TRY(named_check_rank(count));
    Tensor *x = named->value.as.tensor;
    Shape dims = {0}, wide = {.rank = count};
    for (int i = 0; i < count; i++) {
        int dim = named_dim(named, order[i]);
        wide.dims[i] = dim < 0 ? 1 : x->view.dims[dim];
        if (dim >= 0) dims.dims[dims.rank++] = dim;
    }
    SCOPED_TENSOR(permuted);
    Tensor *result;
    TRY(permute(x, &dims, &permuted));
    TRY(reshape(permuted, &wide, &result));
    *out = value_tensor(result);
    return STATUS_OK;
}

// Indexes as the letters of einsum.
static size_t write_letters(char *text, const Named *named) {
    for (int i = 0; i < named->count; i++) {
        int index = named->indexes[i];
        text[i] = (char)(index < 26 ? 'a' + index : 'A' + index - 26);
    }
    ASSERT(named->count >= 0 && named->count <= RANK_MAX);
    return (size_t)named->count;
}

Status named_contract(const Named *factors, int count, const Named *order, Named *out) {
    char equation[(size_t)(count + 1) * (RANK_MAX + 2) + 1];
    OpInput inputs[count];
    size_t length = 0;
    for (int i = 0; i < count; i++) {
        if (i > 0) equation[length++] = ',';
        length += write_letters(equation + length, &factors[i]);
        inputs[i] = op_tensor(factors[i].value.as.tensor);
    }
    equation[length++] = '-';
    equation[length++] = '>';
    length += write_letters(equation + length, order);
    equation[length] = '\0';
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(equation), .equation = equation};
    OpCall call = {
        .op = &op_rows[OP_einsum], .attributes = &attributes, .many = inputs, .n_many = count};
    Tensor *result;
    TRY(op_apply(&call, &result));
    *out = *order;
    out->value = value_tensor(result);
    return STATUS_OK;
}

Status named_diagonal(Named *named) {
    Named kept = {0};
    for (int i = 0; i < named->count; i++)
        if (!named_has(&kept, named->indexes[i])) kept.indexes[kept.count++] = named->indexes[i];
    if (kept.count == named->count) return STATUS_OK;
    Named result;
    TRY(named_contract(named, 1, &kept, &result));
    named_release(named);
    *named = result;
    return STATUS_OK;
}

Status named_reduce_by(Named *named, const Shape *dims, OpId op) {
    for (int i = dims->rank - 1; i >= 0; i--) {
        OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = dims->dims[i]};
        Tensor *result;
        TRY(op_with(op, &named->value.as.tensor, 1, &attributes, &result));
        value_release(named->value);
        named->value = value_tensor(result);
    }
    return STATUS_OK;
}

Shape named_take(Named *named, IndexSet reduced) {
    Shape dims = {0};
    int kept = 0;
    for (int i = 0; i < named->count; i++) {
        if (reduced >> named->indexes[i] & 1)
            dims.dims[dims.rank++] = i;
        else
            named->indexes[kept++] = named->indexes[i];
    }
    ASSERT(kept + dims.rank == named->count);
    named->count = kept;
    return dims;
}

Status named_reduce(Named *named, IndexSet reduced, Projection how) {
    Shape dims = named_take(named, reduced);
    if (dims.rank == 0) return STATUS_OK;
    if (how == PROJECTION_MAX) return named_reduce_by(named, &dims, OP_max_along);
    if (how == PROJECTION_MIN) return named_reduce_by(named, &dims, OP_min_along);
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dims), .dims = dims};
    Tensor *result;
    TRY(op_with(how == PROJECTION_AVG ? OP_mean_dims : OP_sum_dims, &named->value.as.tensor, 1,
                &attributes, &result));
    value_release(named->value);
    named->value = value_tensor(result);
    return STATUS_OK;
}

static Status slice(Tensor *x, int dim, int64_t start, int64_t stop, Tensor **out) {
    IndexItem items[RANK_MAX];
    for (int i = 0; i <= dim; i++) items[i] = (IndexItem){.kind = INDEX_SLICE};
    items[dim].has_start = items[dim].has_stop = true;
    items[dim].start = start;
    items[dim].stop = stop;
    return index_get(x, items, dim + 1, out);
}

// `count` groups of `size` neighbours from `start` on.
static Status group_part(const Named *named, int dim, const int64_t part[3], Projection how,
                         Tensor **out) {
    Tensor *x = named->value.as.tensor;
    int64_t start = part[0], count = part[1], size = part[2];
    SCOPED_TENSOR(cut);
    TRY(slice(x, dim, start, start + count * size, &cut));
    Shape shape = {.rank = x->view.rank + 1};
    TRY(named_check_rank(shape.rank));
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = i == dim ? count : i == dim + 1 ? size : x->view.dims[i > dim ? i - 1 : i];
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape), .shape = shape};
    Tensor *split;
    TRY(op_with(OP_reshape, &cut, 1, &attributes, &split));
    Named groups = {.value = value_tensor(split), .count = shape.rank};
    groups.indexes[dim + 1] = 1;
    Status status = named_reduce(&groups, index_bit(1), how);
    if (status == STATUS_OK) *out = tensor_retain(groups.value.as.tensor);
    named_release(&groups);
    return status;
}

Status named_group(Named *named, int index, int64_t size, Projection how) {
    int dim = named_dim(named, index);
    int64_t length = named->value.as.tensor->view.dims[dim];
    if (size <= 0) return fail(STATUS_VALUE, "an index is divided by %lld", (long long)size);
    int64_t whole[] = {0, length / size, size};
    int64_t rest[] = {length / size * size, 1, length % size};
    SCOPED_TENSOR(first);
    SCOPED_TENSOR(last);
    if (whole[1] > 0 || rest[2] == 0) TRY(group_part(named, dim, whole, how, &first));
    if (rest[2] > 0) TRY(group_part(named, dim, rest, how, &last));
    Tensor *result;
    if (first && last) {
        OpInput both[] = {op_tensor(first), op_tensor(last)};
        TRY(named_join(OP_concat, both, 2, dim, &result));
    } else {
        result = tensor_retain(first ? first : last);
    }
    value_release(named->value);
    named->value = value_tensor(result);
    return STATUS_OK;
}

Status named_join(OpId op, const OpInput *parts, int count, int dim, Tensor **out) {
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = dim};
    OpCall call = {.op = &op_rows[op], .attributes = &attributes, .many = parts, .n_many = count};
    return op_apply(&call, out);
}

Status named_select(const Named *named, int index, int64_t place, Named *out) {
    int dim = named_dim(named, index);
    ASSERT(dim >= 0 && dim < RANK_MAX);
    IndexItem items[RANK_MAX];
    for (int i = 0; i < dim; i++) items[i] = (IndexItem){.kind = INDEX_SLICE};
    items[dim] = (IndexItem){.kind = INDEX_INTEGER, .integer = place};
    Tensor *part;
    TRY(index_get(named->value.as.tensor, items, dim + 1, &part));
    *out = (Named){.value = value_tensor(part)};
    for (int i = 0; i < named->count; i++)
        if (i != dim) out->indexes[out->count++] = named->indexes[i];
    return STATUS_OK;
}

Status named_pad(Tensor *tensor, int dim, const int64_t more[2], double value, Tensor **out) {
    ASSERT(dim < tensor->view.rank);
    Tensor *parts[3] = {NULL, tensor, NULL};
    Status status = STATUS_OK;
    for (int side = 0; side < 2 && status == STATUS_OK; side++) {
        OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(dtype) |
                                            ATTRIBUTE_BIT(value),
                                   .shape = tensor_shape(tensor),
                                   .dtype = tensor_dtype(tensor),
                                   .value = {.dtype = DTYPE_FLOAT64, .as.f = value}};
        attributes.shape.dims[dim] = more[side];
        status = op_with(OP_full, NULL, 0, &attributes, &parts[2 * side]);
    }
    OpInput inputs[] = {op_tensor(parts[0]), op_tensor(tensor), op_tensor(parts[2])};
    if (status == STATUS_OK) status = named_join(OP_concat, inputs, 3, dim, out);
    tensor_release(parts[0]);
    tensor_release(parts[2]);
    return status;
}
