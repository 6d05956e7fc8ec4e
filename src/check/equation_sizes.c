// The sizes of an equation's indexes, from those of its terms. Serves inference, which may not know
// all of them, and the evaluator.
#include "check/equation_sizes.h"

enum { TEXT_MAX = 40 };

Status equation_rank(const EquationTerm *term, const TensorType *type) {
    char text[TEXT_MAX];
    ASSERT(type->shape.rank >= 0 && type->shape.rank <= RANK_MAX);
    if ((size_t)type->shape.rank == term->rank) return STATUS_OK;
    return fail(STATUS_SHAPE, "%s has %zu ind%s, but the tensor is %s",
                equation_text(term->span, text, sizeof text), term->rank,
                term->rank == 1 ? "ex" : "exes", tensor_type_text(type).text);
}

static Status bind_size(EquationSizes *sizes, int index, int64_t size, int term) {
    const Equation *equation = sizes->equation;
    char here[TEXT_MAX], there[TEXT_MAX];
    ASSERT(index >= 0 && index < equation->name_count && (size_t)term < equation->term_count);
    if (!size_is_known(sizes->sizes[index])) {
        sizes->sizes[index] = size;
        sizes->from[index] = term;
        return STATUS_OK;
    }
    if (!sizes_differ(sizes->sizes[index], size)) return STATUS_OK;
    sizes->failed = term;
    sizes->index = index;
    const Word *name = &equation->names[index];
    bool slice = name->text[name->length - 1] == ':';
    equation_text(equation->terms[term].span, here, sizeof here);
    equation_text(equation->terms[sizes->from[index]].span, there, sizeof there);
    return fail(STATUS_SHAPE, "%s %.*s is %lld in %s, but %lld in %s", slice ? "slice" : "index",
                (int)(name->length - slice), name->text, (long long)sizes->sizes[index], there,
                (long long)size, here);
}

// What a sum of indexes reaches from and to, all sizes known; `but`: leaves that index out.
typedef struct Reach {
    int64_t low, high, factor; // factor: of the index left out
    int unknown;               // how many indexes have no size, `but` the last of them
    int but;
    bool known; // all numbers are
} Reach;

static int64_t value_of(const EquationSizes *sizes, int value, int64_t otherwise) {
    return value < 0 ? otherwise : sizes->values[value];
}

static Reach reach_of(const EquationSizes *sizes, const Position *position) {
    Reach reach = {.but = -1, .known = true};
    ASSERT(position->kind == POSITION_SUM);
    for (size_t i = 0; i < position->count; i++) {
        const IndexPart *part = &position->parts[i];
        int64_t factor = value_of(sizes, part->factor, 1);
        int64_t size = part->index < 0 ? 2 : sizes->sizes[part->index];
        reach.known &= size_is_known(factor);
        if (!reach.known) return reach;
        if (part->negative) factor = -factor;
        if (part->index < 0) {
            reach.low += factor;
            reach.high += factor;
        } else if (!size_is_known(size)) {
            reach.unknown += reach.but != part->index;
            reach.but = part->index;
            reach.factor += factor;
        } else {
            *(factor < 0 ? &reach.low : &reach.high) += factor * (size > 0 ? size - 1 : 0);
        }
    }
    return reach;
}

static Status fail_outside(EquationSizes *sizes, int term, const Position *position,
                           const Reach *reach, int64_t size) {
    char text[TEXT_MAX], whole[TEXT_MAX];
    ASSERT((size_t)term < sizes->equation->term_count);
    sizes->failed = term;
    return fail(STATUS_INDEX, "%s reaches from %lld to %lld, but its dimension in %s has size %lld",
                equation_text(position->span, text, sizeof text), (long long)reach->low,
                (long long)reach->high,
                equation_text(sizes->equation->terms[term].span, whole, sizeof whole),
                (long long)size);
}

// Finds the size of the one index that is not known yet: as large as the dimension allows.
static Status solve(EquationSizes *sizes, int term, const Position *position, int64_t dim,
                    bool *progress) {
    Reach reach = reach_of(sizes, position);
    ASSERT(position->kind == POSITION_SUM);
    int64_t divisor = value_of(sizes, position->divisor, 1);
    if (!reach.known || !size_is_known(divisor) || !size_is_known(dim)) return STATUS_OK;
    if (divisor <= 0) {
        sizes->failed = term;
        return fail(STATUS_VALUE, "an index is divided by %lld", (long long)divisor);
    }
    if (reach.unknown > 1 || (reach.unknown == 1 && reach.factor == 0)) return STATUS_OK;
    int64_t last = dim * divisor - 1;
    if (reach.unknown == 1) {
        int64_t room = reach.factor > 0 ? last - reach.high : reach.low;
        int64_t step = reach.factor > 0 ? reach.factor : -reach.factor;
        int64_t size = room < 0 ? 0 : room / step + 1;
        if (size == 0) return fail_outside(sizes, term, position, &reach, dim);
        sizes->sizes[reach.but] = size;
        sizes->from[reach.but] = term;
        *progress = true;
        reach = reach_of(sizes, position);
    }
    bool inside = reach.low >= 0 && reach.high <= last;
    if (inside) return STATUS_OK;
    reach.low = reach.low < 0 ? (reach.low - divisor + 1) / divisor : reach.low / divisor;
    reach.high /= divisor;
    return fail_outside(sizes, term, position, &reach, dim);
}

static Status solve_all(EquationSizes *sizes, bool *progress) {
    const Equation *equation = sizes->equation;
    *progress = false;
    for (size_t t = 0; t < equation->term_count; t++)
        for (size_t i = 0; i < equation->terms[t].count; i++)
            if (equation->terms[t].positions[i].kind == POSITION_SUM)
                TRY(solve(sizes, (int)t, &equation->terms[t].positions[i], sizes->dims[t].dims[i],
                          progress));
    return STATUS_OK;
}

Status equation_sizes(EquationSizes *sizes) {
    const Equation *equation = sizes->equation;
    ASSERT(equation->name_count <= INDEXES_MAX);
    sizes->index = -1;
    for (int i = 0; i < INDEXES_MAX; i++) sizes->sizes[i] = SIZE_UNKNOWN;
    for (size_t t = 0; t < equation->term_count; t++)
        for (size_t i = 0; i < equation->terms[t].count; i++) {
            const Position *position = &equation->terms[t].positions[i];
            if (position->kind == POSITION_INDEX || position->kind == POSITION_SLICE)
                TRY(bind_size(sizes, position->index, sizes->dims[t].dims[i], (int)t));
        }
    bool progress = true;
    while (progress) TRY(solve_all(sizes, &progress));
    return STATUS_OK;
}
