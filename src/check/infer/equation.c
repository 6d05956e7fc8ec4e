// Tensor equations: the sizes of indexes as far as the shapes of terms are known.
#include "check/equation_sizes.h"
#include "check/infer/infer.h"

typedef struct TermFacts {
    Inference *in;
    const Equation *plan;
    const Fact **facts; // of the values
    Shape *dims;        // of the terms
} TermFacts;

static void report_terms(const TermFacts *facts, const Span *spans, const int *terms,
                         size_t count) {
    Operand operands[2];
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        int object = facts->plan->terms[terms[i]].object;
        if (object < 0) continue;
        Node *node = facts->plan->values.items[object];
        operands[known++] = (Operand){facts->facts[object], node->span, node};
    }
    infer_report(facts->in, *spans, operands, known);
}

// The sizes of a term's dimensions; false where its tensor certainly does not fit.
static bool read_term(const TermFacts *facts, int t) {
    ASSERT((size_t)t < facts->plan->term_count);
    const EquationTerm *term = &facts->plan->terms[t];
    const Fact *fact = term->object < 0 ? &fact_any : facts->facts[term->object];
    Shape *dims = &facts->dims[t];
    dims->rank = (int)term->count;
    for (size_t i = 0; i < term->count; i++) dims->dims[i] = SIZE_UNKNOWN;
    if (!fact_has_shape(fact)) return true;
    if (equation_rank(term, &fact->as.tensor.type) != STATUS_OK) {
        report_terms(facts, &term->span, &t, 1);
        return false;
    }
    for (size_t i = 0, at = 0; i < term->count; i++) {
        const Position *position = &term->positions[i];
        bool has_dim = position->kind != POSITION_STATE || term->rank == term->count;
        int64_t size = has_dim ? fact->as.tensor.type.shape.dims[at++] : SIZE_UNKNOWN;
        bool whole = position->start < 0 && position->stop < 0 && position->step < 0;
        if (term->grows >> i & 1) size = SIZE_UNKNOWN;
        if (position->kind != POSITION_SLICE || whole) dims->dims[i] = size;
    }
    return true;
}

static const Fact *result_fact(Inference *in, const EquationSizes *sizes) {
    const Equation *plan = sizes->equation;
    Shape shape = {0};
    bool plain = plan->left_count > 0;
    for (size_t i = 0; i < plan->left_count; i++) {
        plain &= plan->left[i].kind != POSITION_SUM && plan->left[i].kind != POSITION_STATE;
        plain &= !plan->program || (plan->left[i].kind == POSITION_INDEX && !plan->left[i].offset);
        if (plan->left[i].kind != POSITION_VALUE && shape.rank < RANK_MAX)
            shape.dims[shape.rank++] = sizes->sizes[plan->left[i].index];
    }
    return plain ? fact_tensor(&in->arena, DTYPE_COUNT, &shape) : &fact_any;
}

// Code that is looked at several times may have several sizes.
static void keep_sizes(const EquationSizes *sizes) {
    for (int i = 0; i < sizes->equation->name_count; i++) {
        int64_t *kept = &sizes->equation->sizes[i], found = sizes->sizes[i];
        *kept = *kept == 0 || *kept == found ? found : SIZE_UNKNOWN;
    }
}

const Fact *infer_equation(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_EQUATION);
    const Equation *plan = node->as.equation.plan;
    if (!plan) return &fact_any;
    size_t values = plan->values.count, terms = plan->term_count;
    const Fact **facts = arena_allocate(&in->arena, (values + 1) * sizeof *facts);
    int64_t *integers = arena_allocate(&in->arena, (values + 1) * sizeof *integers);
    TermFacts read = {in, plan, facts, arena_allocate(&in->arena, (terms + 1) * sizeof(Shape))};
    for (size_t i = 0; i < values; i++) {
        facts[i] = infer_expression(in, plan->values.items[i]);
        integers[i] = facts[i]->kind == FACT_INT ? facts[i]->as.integer : SIZE_UNKNOWN;
    }
    for (size_t t = 0; t < terms; t++)
        if (!read_term(&read, (int)t)) return &fact_any;
    EquationSizes sizes = {.equation = plan, .dims = read.dims, .values = integers};
    if (equation_sizes(&sizes) == STATUS_OK) {
        keep_sizes(&sizes);
        return result_fact(in, &sizes);
    }
    int both[2] = {sizes.index < 0 ? 0 : sizes.from[sizes.index], sizes.failed};
    bool two = sizes.index >= 0;
    report_terms(&read, &plan->terms[sizes.failed].span, two ? both : &sizes.failed, two ? 2 : 1);
    return &fact_any;
}
