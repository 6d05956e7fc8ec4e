// Shapes of what is selected and placed by indexes, and of the operands of losses.
#include <string.h>

#include "shape/rules.h"

Status shape_embedding(const TensorType *table) {
    if (table->shape.rank == 2) return STATUS_OK;
    (void)fail(STATUS_SHAPE, "embedding: the table must be [vocab, dim], but it is %s",
               tensor_type_text(table).text);
    return fail_help("the order is embedding(table, ids)");
}

Status shape_gather(const char *op, const TensorType *x, int dim, const TensorType *index) {
    bool fits = index->shape.rank == x->shape.rank;
    for (int i = 0; fits && i < x->shape.rank; i++) {
        int64_t own = x->shape.dims[i], size = index->shape.dims[i];
        fits = i == dim || !size_is_known(own) || !size_is_known(size) || size <= own;
    }
    if (fits) return STATUS_OK;
    (void)fail(STATUS_SHAPE, "%s: index %s does not fit %s along dimension %d", op,
               tensor_type_text(index).text, tensor_type_text(x).text, dim);
    return fail_help("give an index of the tensor's rank, no larger than it in the other "
                     "dimensions, or a 1-D index that selects whole slices");
}

Status shape_gather_rank(const char *op, const TensorType *x, const TensorType *index) {
    int rank = x->shape.rank - 1 + index->shape.rank;
    if (rank <= RANK_MAX) return STATUS_OK;
    return fail(STATUS_SHAPE, "%s: the result would have %d dimensions; at most %d are possible",
                op, rank, RANK_MAX);
}

Status shape_index_line(const TensorType *index) {
    if (index->shape.rank <= 1) return STATUS_OK;
    return fail(STATUS_SHAPE, "index_select: index is %s; it must have one dimension",
                tensor_type_text(index).text);
}

Status shape_scatter_source(const char *op, const TensorType *source, const TensorType *x,
                            const Shape *selected) {
    int missing = selected->rank - source->shape.rank;
    bool fits = missing >= 0;
    for (int i = 0; fits && i < source->shape.rank; i++)
        fits = source->shape.dims[i] == 1 ||
               !sizes_differ(source->shape.dims[i], selected->dims[missing + i]);
    if (fits) return STATUS_OK;
    return fail(STATUS_SHAPE, "%s: source is %s, but the index selects %s", op,
                tensor_type_text(source).text, type_name(x->dtype, selected).text);
}

Status shape_index_rank(const TensorType *x, int dimensions, int ellipses) {
    if (ellipses > 1) return fail(STATUS_INDEX, "an index may hold only one ...");
    int rank = x->shape.rank;
    if (dimensions <= rank) return STATUS_OK;
    return fail(STATUS_INDEX, "%s has %d dimension%s, but the index names %d",
                tensor_type_text(x).text, rank, rank == 1 ? "" : "s", dimensions);
}

Status shape_mask(const TensorType *x, int first, const TensorType *mask) {
    if (mask->shape.rank == 0)
        return fail(STATUS_INDEX, "a mask of rank 0 cannot index a tensor; use if or where");
    for (int i = 0; i < mask->shape.rank; i++)
        if (sizes_differ(mask->shape.dims[i], x->shape.dims[first + i]))
            return fail(STATUS_INDEX, "the mask is %s, but dimension %d of %s has size %lld",
                        tensor_type_text(mask).text, first + i, tensor_type_text(x).text,
                        (long long)x->shape.dims[first + i]);
    return STATUS_OK;
}

Status shape_assign(const TensorType *target, const Shape *part, const TensorType *value) {
    int missing = part->rank - value->shape.rank;
    bool fits = true;
    for (int i = 0; fits && i < value->shape.rank; i++)
        fits = value->shape.dims[i] == 1 ||
               !sizes_differ(value->shape.dims[i], missing + i < 0 ? 1 : part->dims[missing + i]);
    if (fits) return STATUS_OK;
    SCOPED_TEXT(words);
    shape_describe(part, &words);
    return fail(STATUS_SHAPE, "cannot assign %s to a part of %s that has shape %s",
                tensor_type_text(value).text, tensor_type_text(target).text, text_get(&words));
}

Status shape_same(const char *op, const TensorType *x, const TensorType *y) {
    if (x->shape.rank == 0 || y->shape.rank == 0 || !shapes_differ(&x->shape, &y->shape))
        return STATUS_OK;
    return fail(STATUS_SHAPE, "%s: the operands differ in shape: %s and %s", op,
                tensor_type_text(x).text, tensor_type_text(y).text);
}

Status shape_classes(const char *op, const TensorType *logits, const TensorType *target) {
    int rank = logits->shape.rank;
    bool fits = rank > 0 && target->shape.rank == rank - 1;
    for (int i = 0; fits && i < rank - 1; i++)
        fits = !sizes_differ(target->shape.dims[i], logits->shape.dims[i]);
    if (fits) return STATUS_OK;
    return fail(STATUS_SHAPE, "%s: %s needs one class per row, but the target is %s", op,
                tensor_type_text(logits).text, tensor_type_text(target).text);
}

Status shape_class_weights(const char *op, const TensorType *logits, const TensorType *weight) {
    int rank = logits->shape.rank;
    if (weight->shape.rank == 1 && rank > 0 &&
        !sizes_differ(weight->shape.dims[0], logits->shape.dims[rank - 1]))
        return STATUS_OK;
    return fail(STATUS_SHAPE, "%s: %s needs one weight per class, but weight is %s", op,
                tensor_type_text(logits).text, tensor_type_text(weight).text);
}

Status shape_reduction(const char *op, const char *name, size_t length, Reduction *out) {
    static const char *const names[] = {"mean", "sum", "none"};
    for (int i = 0; i < 3; i++) {
        *out = (Reduction)i;
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) return STATUS_OK;
    }
    (void)fail(STATUS_VALUE, "%s: there is no reduction \"%.*s\"", op, (int)length, name);
    return fail_help("\"mean\", \"sum\" and \"none\" are known");
}
