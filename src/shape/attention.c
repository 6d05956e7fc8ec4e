// Shapes of attention, rotary positions and grouped heads.
#include "shape/rules.h"

static Status fail_attention(const TensorType *const *parts, const char *problem) {
    return fail(STATUS_SHAPE, "attention: %s: q is %s, k is %s, v is %s", problem,
                tensor_type_text(parts[0]).text, tensor_type_text(parts[1]).text,
                tensor_type_text(parts[2]).text);
}

static Status check_mask(const TensorType *mask, const Shape *leading, const int64_t *q,
                         const int64_t *k) {
    Shape shape = *leading;
    const int64_t scores[3] = {q[1], q[0], k[0]};
    for (int i = 0; i < 3; i++) shape.dims[shape.rank++] = scores[i];
    int missing = shape.rank - mask->shape.rank;
    bool fits = missing >= 0;
    for (int i = 0; fits && i < mask->shape.rank; i++)
        fits =
            mask->shape.dims[i] == 1 || !sizes_differ(mask->shape.dims[i], shape.dims[missing + i]);
    if (fits) return STATUS_OK;
    SCOPED_TEXT(text);
    shape_describe(&shape, &text);
    return fail(STATUS_SHAPE, "attention: the mask is %s, but the scores are %s",
                tensor_type_text(mask).text, text_get(&text));
}

Status shape_attention(const TensorType *q, const TensorType *k, const TensorType *v,
                       const TensorType *mask, Shape *leading) {
    const TensorType *parts[3] = {q, k, v};
    TensorType ahead[3];
    const int64_t *dims[3];
    for (int i = 0; i < 3; i++) {
        if (parts[i]->shape.rank < 3)
            return fail_attention(parts, "each must be [.., seq, heads, head_dim]");
        ahead[i] = *parts[i];
        ahead[i].shape.rank -= 3;
        dims[i] = &parts[i]->shape.dims[ahead[i].shape.rank];
    }
    if (sizes_differ(dims[1][0], dims[2][0]) || sizes_differ(dims[1][1], dims[2][1]))
        return fail_attention(parts, "k and v must have the same sequence and heads");
    if (sizes_differ(dims[1][2], dims[0][2]))
        return fail_attention(parts, "the head sizes of q and k differ");
    bool known = size_is_known(dims[0][1]) && size_is_known(dims[1][1]);
    if (dims[1][1] == 0 || (known && dims[0][1] % dims[1][1] != 0))
        return fail_attention(parts, "the heads of q must be a multiple of those of k and v");
    TRY(shape_broadcast("attention", &ahead[1], &ahead[2], &ahead[1].shape));
    TRY(shape_broadcast("attention", &ahead[0], &ahead[1], leading));
    return mask ? check_mask(mask, leading, dims[0], dims[1]) : STATUS_OK;
}

Status shape_attention_sinks(const TensorType *q, const TensorType *sinks) {
    int64_t heads = q->shape.dims[q->shape.rank - 2];
    ASSERT(q->shape.rank >= 3);
    if (sinks->shape.rank == 1 && !sizes_differ(sinks->shape.dims[0], heads)) return STATUS_OK;
    return fail(STATUS_SHAPE,
                "attention: sinks are %s; they must be one number for each head of %s",
                tensor_type_text(sinks).text, tensor_type_text(q).text);
}

// Whether a type has those sizes.
static bool has_sizes(const TensorType *type, int rank, const int64_t *sizes) {
    bool fits = type->shape.rank == rank;
    for (int i = 0; fits && i < rank; i++) fits = !sizes_differ(type->shape.dims[i], sizes[i]);
    return fits;
}

static Status fail_linear(const char *name, const TensorType *wrong, const TensorType *q,
                          const TensorType *v) {
    return fail(STATUS_SHAPE, "linear_attention: %s is %s, which does not fit q %s and v %s", name,
                tensor_type_text(wrong).text, tensor_type_text(q).text, tensor_type_text(v).text);
}

Status shape_linear_attention(const TensorType *const inputs[6], Shape *out) {
    const TensorType *q = inputs[0], *k = inputs[1], *v = inputs[2], *decay = inputs[3];
    if (q->shape.rank != 3 || v->shape.rank != 3)
        return fail(STATUS_SHAPE,
                    "linear_attention: q and v must be [rows, heads, numbers], but they are %s "
                    "and %s",
                    tensor_type_text(q).text, tensor_type_text(v).text);
    const int64_t *keys = q->shape.dims, *values = v->shape.dims;
    const int64_t state[3] = {keys[2], keys[1], values[2]};
    if (!has_sizes(k, 3, keys)) return fail_linear("k", k, q, v);
    if (sizes_differ(keys[0], values[0]) || sizes_differ(keys[1], values[1]))
        return fail_linear("v", v, q, v);
    if (!has_sizes(decay, 2, keys) && !has_sizes(decay, 3, keys))
        return fail_linear("decay", decay, q, v);
    if (inputs[4] && !has_sizes(inputs[4], 3, state)) return fail_linear("state", inputs[4], q, v);
    if (inputs[5] && !has_sizes(inputs[5], 2, keys)) return fail_linear("beta", inputs[5], q, v);
    *out = (Shape){.rank = 3, .dims = {size_add(keys[0], keys[2]), keys[1], values[2]}};
    return STATUS_OK;
}

Status shape_rope(const TensorType *x, int64_t rotary) {
    int rank = x->shape.rank;
    if (rank < 3)
        return fail(STATUS_SHAPE,
                    "rope: x must be [seq, heads, head_dim] or [batch, seq, heads, head_dim], but "
                    "it is %s",
                    tensor_type_text(x).text);
    int64_t head_dim = x->shape.dims[rank - 1];
    if (!size_is_known(rotary) || !size_is_known(head_dim) ||
        (rotary >= 0 && rotary <= head_dim && rotary % 2 == 0))
        return STATUS_OK;
    return fail(STATUS_SHAPE,
                "rope: %lld of %lld numbers of each head of %s cannot be turned in pairs",
                (long long)rotary, (long long)head_dim, tensor_type_text(x).text);
}

Status shape_rope_table(const TensorType *x, const TensorType *table, int64_t rotary,
                        int64_t offset) {
    int64_t needed = size_add(offset, x->shape.dims[x->shape.rank - 3]);
    int64_t pairs = size_is_known(rotary) ? rotary / 2 : SIZE_UNKNOWN;
    int64_t width = table->shape.rank == 2 ? table->shape.dims[1] : -1;
    int64_t rows = table->shape.rank == 2 ? table->shape.dims[0] : -1;
    bool wide = sizes_differ(width, pairs) && sizes_differ(width, 2 * pairs);
    bool few = size_is_known(rows) && size_is_known(needed) && rows < needed;
    if (width != -1 && !wide && !few && (!size_is_known(offset) || offset >= 0)) return STATUS_OK;
    SCOPED_TEXT(wanted);
    SCOPED_TEXT(half);
    SCOPED_TEXT(at);
    size_append(&wanted, needed);
    size_append(&half, pairs);
    size_append(&at, offset);
    (void)fail(STATUS_SHAPE, "rope: a table is %s, but %s at offset %s needs [%s or more, %s]",
               tensor_type_text(table).text, tensor_type_text(x).text, text_get(&at),
               text_get(&wanted), text_get(&half));
    text_clear(&half);
    size_append(&half, rotary);
    return fail_help("precompute_rope_cos(%s, max_len) makes one", text_get(&half));
}

Status shape_repeat_heads(const TensorType *x) {
    if (x->shape.rank >= 2 && x->shape.rank < RANK_MAX) return STATUS_OK;
    return fail(STATUS_SHAPE, "repeat_kv: x must be [.., heads, head_dim], but it is %s",
                tensor_type_text(x).text);
}

Status shape_cached_attention(const TensorType *const *inputs, int64_t heads) {
    for (int i = 0; i < 4; i++)
        if (inputs[i]->shape.rank != 2)
            return fail(STATUS_SHAPE, "attention_with_cache takes matrices, but argument %d is %s",
                        i + 1, tensor_type_text(inputs[i]).text);
    int64_t width = inputs[0]->shape.dims[1], keys = inputs[1]->shape.dims[1];
    int64_t values = inputs[2]->shape.dims[1];
    if (!size_is_known(width) || !size_is_known(heads)) return STATUS_OK;
    if (heads < 1 || width % heads != 0 || width == 0)
        return fail(STATUS_SHAPE, "attention_with_cache: %lld numbers of %s are not %lld heads",
                    (long long)width, tensor_type_text(inputs[0]).text, (long long)heads);
    int64_t head_dim = width / heads, rows = inputs[0]->shape.dims[0];
    int64_t cached = inputs[1]->shape.dims[0];
    bool short_cache = size_is_known(rows) && size_is_known(cached) && rows > cached;
    if ((size_is_known(keys) && keys % head_dim != 0) || short_cache)
        return fail(
            STATUS_SHAPE, "attention_with_cache: keys %s do not fit queries %s of %lld heads",
            tensor_type_text(inputs[1]).text, tensor_type_text(inputs[0]).text, (long long)heads);
    if (size_is_known(values) && values % head_dim != 0)
        return fail(STATUS_SHAPE, "attention_with_cache: values %s are not heads of %lld numbers",
                    tensor_type_text(inputs[2]).text, (long long)head_dim);
    return STATUS_OK;
}
