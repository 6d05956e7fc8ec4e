// Numbers of ground nodes: a sum over their ways of the product along each, until a round changes
// nothing; then back through the same sums and products for gradients.
#include "logic/weigh.h"

#include <math.h>
#include <stdlib.h>

#include "logic/weighers.h"

static const double settled = 1e-12; // a change that counts as none

typedef struct Algebra {
    double zero, one;
    bool adds;    // along a way
    bool ignores; // weights: each fact counts as one
    enum { OVER_SUM, OVER_MAX, OVER_MIN, OVER_OR, OVER_LOG } over;
} Algebra;

static Algebra algebra_of(Semiring semiring) {
    switch (semiring) {
    case SEMIRING_BOOL: return (Algebra){0, 1, false, true, OVER_MAX};
    case SEMIRING_COUNT: return (Algebra){0, 1, false, true, OVER_SUM};
    case SEMIRING_MAX_PROD: return (Algebra){0, 1, false, false, OVER_MAX};
    case SEMIRING_MIN_PLUS: return (Algebra){INFINITY, 0, true, false, OVER_MIN};
    case SEMIRING_PROB: return (Algebra){0, 1, false, false, OVER_OR};
    case SEMIRING_LOG: return (Algebra){-INFINITY, 0, true, false, OVER_LOG};
    default: return (Algebra){0, 1, false, false, OVER_SUM};
    }
}

typedef struct Sums {
    const Weighing *weighing;
    const Ground *ground;
    Algebra algebra;
    double *values;  // of nodes
    double *negated; // values that `not` reads: of the round of rounds before
    uint32_t *best;  // of a node: its best instance so far + 1; 0: the fact
} Sums;

static double leaf_weight(const Sums *sums, uint32_t leaf) {
    ASSERT(leaf == NO_LEAF || leaf < sums->ground->leaves.count);
    if (leaf == NO_LEAF || sums->algebra.ignores) return sums->algebra.one;
    return sums->weighing->weights[leaf];
}

static double times(const Algebra *algebra, double x, double y) {
    if (algebra->adds) return x + y;
    return x == 0 || y == 0 ? 0 : x * y;
}

static double plus(const Algebra *algebra, double x, double y) {
    switch (algebra->over) {
    case OVER_MAX: return x > y ? x : y;
    case OVER_MIN: return x < y ? x : y;
    case OVER_OR: return x + y - x * y;
    case OVER_LOG: {
        double high = x > y ? x : y, low = x > y ? y : x;
        return low == -INFINITY ? high : high + log1p(exp(low - high));
    }
    default: return x + y;
    }
}

// `not` of a probability is the rest; of other numbers only whether there is something counts.
static double literal_value(const Sums *sums, const GroundLiteral *literal) {
    const Algebra *algebra = &sums->algebra;
    if (!literal->negated) return sums->values[literal->node];
    double value = sums->negated[literal->node];
    if (algebra->over == OVER_OR) return 1 - value;
    return value == algebra->zero ? algebra->one : algebra->zero;
}

static double instance_value(const Sums *sums, const GroundInstance *instance) {
    double value = leaf_weight(sums, instance->leaf);
    for (uint32_t i = 0; i < instance->count; i++) {
        const GroundLiteral *literal = &sums->ground->literals.items[instance->first + i];
        value = times(&sums->algebra, value, literal_value(sums, literal));
    }
    return value;
}

// Where the best of several is taken, which it is changes only for a better one: so that ways of
// best instances never go in circles.
static double node_value(const Sums *sums, uint32_t number) {
    const GroundNode *node = &sums->ground->nodes.items[number];
    const Algebra *algebra = &sums->algebra;
    bool extreme = algebra->over == OVER_MAX || algebra->over == OVER_MIN;
    double value = node->fact ? leaf_weight(sums, node->leaf) : algebra->zero;
    double reached = plus(algebra, sums->values[number], value);
    for (uint32_t i = 0; i < node->count; i++) {
        double way = instance_value(sums, &sums->ground->instances.items[node->first + i]);
        bool better = algebra->over == OVER_MAX ? way > reached : way < reached;
        if (extreme && better) {
            sums->best[number] = i + 1;
            reached = way;
        }
        value = plus(algebra, value, way);
    }
    return value;
}

static Status fail_circles(const Sums *sums) {
    fail(STATUS_VALUE, "the weights of the ways have no sum after %lld iterations",
         (long long)sums->weighing->iterations_max);
    return fail_help("facts that follow from themselves have ways without end: bool, max_prod, "
                     "min_plus and exact have values for them");
}

// The values where `not` reads what is given.
static Status sum_up(Sums *sums) {
    const Ground *ground = sums->ground;
    ASSERT(ground->order.count <= ground->nodes.count);
    for (size_t i = 0; i < ground->nodes.count; i++) {
        sums->values[i] = sums->algebra.zero;
        sums->best[i] = 0;
    }
    for (int64_t round = 0; round < sums->weighing->iterations_max; round++) {
        double change = 0;
        for (size_t i = 0; i < ground->order.count; i++) {
            uint32_t node = ground->order.items[i];
            double value = node_value(sums, node), before = sums->values[node];
            double size = value == before ? 0 : fabs(value - before);
            if (!(size <= change)) change = size;
            sums->values[node] = value;
        }
        if (change <= settled || !ground->cyclic) return STATUS_OK;
    }
    return fail_circles(sums);
}

static bool has_negation(const Ground *ground) {
    for (size_t i = 0; i < ground->literals.count; i++)
        if (ground->literals.items[i].negated) return true;
    return false;
}

// What `not` reads is right for one more stratum each time.
static Status sum_strata(Sums *sums) {
    const Ground *ground = sums->ground;
    size_t bytes = ground->nodes.count * sizeof(double);
    for (size_t i = 0; i < ground->nodes.count; i++) sums->negated[i] = sums->algebra.zero;
    do {
        TRY(sum_up(sums));
        if (!has_negation(ground) || memcmp(sums->negated, sums->values, bytes) == 0)
            return STATUS_OK;
        memcpy(sums->negated, sums->values, bytes);
    } while (true);
}

// --- gradients

// What the sum over a node's ways changes by one of them: way 0 is the fact.
static double way_slope(const Sums *sums, uint32_t number, uint32_t way, double value) {
    const GroundNode *node = &sums->ground->nodes.items[number];
    double rest = 1;
    switch (sums->algebra.over) {
    case OVER_MAX:
    case OVER_MIN: return way == sums->best[number];
    case OVER_LOG: return value == -INFINITY ? 0 : exp(value - sums->values[number]);
    case OVER_OR:
        if (way > 0 && node->fact) rest = 1 - leaf_weight(sums, node->leaf);
        for (uint32_t i = 0; i < node->count; i++)
            if (i + 1 != way)
                rest *= 1 - instance_value(sums, &sums->ground->instances.items[node->first + i]);
        return rest;
    default: return 1;
    }
}

typedef struct Slopes {
    const Sums *sums;
    double *of_nodes, *next; // of one answer by each node
    double *of_leaves;
} Slopes;

static void add_leaf(const Slopes *slopes, uint32_t leaf, double slope) {
    if (leaf != NO_LEAF && !slopes->sums->algebra.ignores) slopes->of_leaves[leaf] += slope;
}

// A way's part of the slope goes to its rule's weight and its literals.
static void pass_way(const Slopes *slopes, const GroundInstance *instance, double slope) {
    const Sums *sums = slopes->sums;
    const GroundLiteral *literals = &sums->ground->literals.items[instance->first];
    for (uint32_t i = 0; i <= instance->count; i++) { // the last one: the rule
        double rest = 1;
        for (uint32_t j = 0; j < instance->count && !sums->algebra.adds; j++)
            if (j != i) rest *= literal_value(sums, &literals[j]);
        if (i < instance->count && !sums->algebra.adds) rest *= leaf_weight(sums, instance->leaf);
        if (i == instance->count)
            add_leaf(slopes, instance->leaf, slope * rest);
        else if (!literals[i].negated)
            slopes->next[literals[i].node] += slope * rest;
        else if (sums->algebra.over == OVER_OR)
            slopes->next[literals[i].node] -= slope * rest;
    }
}

static void pass_node(const Slopes *slopes, uint32_t number, double slope) {
    const GroundNode *node = &slopes->sums->ground->nodes.items[number];
    const Sums *sums = slopes->sums;
    if (slope == 0) return;
    if (node->fact)
        add_leaf(slopes, node->leaf,
                 slope * way_slope(sums, number, 0, leaf_weight(sums, node->leaf)));
    for (uint32_t i = 0; i < node->count; i++) {
        const GroundInstance *instance = &sums->ground->instances.items[node->first + i];
        double part = way_slope(sums, number, i + 1, instance_value(sums, instance));
        if (part != 0) pass_way(slopes, instance, slope * part);
    }
}

// Without cycles every node is complete before its ways are gone into.
static void slopes_down(Slopes *slopes, uint32_t answer) {
    const Ground *ground = slopes->sums->ground;
    slopes->next = slopes->of_nodes;
    for (size_t i = 0; i < ground->nodes.count; i++) slopes->of_nodes[i] = i == answer;
    for (size_t i = ground->order.count; i-- > 0;)
        pass_node(slopes, ground->order.items[i], slopes->of_nodes[ground->order.items[i]]);
}

static Status slopes_settle(Slopes *slopes, uint32_t answer) {
    const Sums *sums = slopes->sums;
    size_t count = sums->ground->nodes.count, leaves = sums->ground->leaves.count;
    double *next = slopes->next;
    for (size_t i = 0; i < count; i++) slopes->of_nodes[i] = i == answer;
    for (int64_t round = 0; round < sums->weighing->iterations_max; round++) {
        double change = 0;
        memset(slopes->of_leaves, 0, leaves * sizeof(double));
        for (size_t i = 0; i < count; i++) next[i] = i == answer;
        for (size_t i = 0; i < count; i++) pass_node(slopes, (uint32_t)i, slopes->of_nodes[i]);
        for (size_t i = 0; i < count; i++) {
            double size = fabs(next[i] - slopes->of_nodes[i]);
            if (!(size <= change)) change = size;
            slopes->of_nodes[i] = next[i];
        }
        if (change <= settled) return STATUS_OK;
    }
    return fail_circles(sums);
}

static Status find_slopes(const Sums *sums) {
    const Ground *ground = sums->ground;
    Slopes slopes = {.sums = sums};
    SCOPED_MEMORY double *of_nodes =
        memory_allocate_zeroed(ground->nodes.count + 1, sizeof(double));
    SCOPED_MEMORY double *next = memory_allocate_zeroed(ground->nodes.count + 1, sizeof(double));
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < ground->answers && status == STATUS_OK; i++) {
        slopes.of_nodes = of_nodes;
        slopes.next = next;
        slopes.of_leaves = &sums->weighing->gradients[i * ground->leaves.count];
        memset(slopes.of_leaves, 0, ground->leaves.count * sizeof(double));
        if (ground->cyclic)
            status = slopes_settle(&slopes, i);
        else
            slopes_down(&slopes, i);
    }
    return status;
}

static Sums sums_make(const Weighing *weighing) {
    const Ground *ground = weighing->ground;
    Sums sums = {weighing, ground, algebra_of(weighing->semiring), NULL, NULL, NULL};
    sums.values = memory_allocate_zeroed(ground->nodes.count + 1, sizeof(double));
    sums.negated = memory_allocate_zeroed(ground->nodes.count + 1, sizeof(double));
    sums.best = memory_allocate_zeroed(ground->nodes.count + 1, sizeof(uint32_t));
    return sums;
}

static void sums_free(Sums *sums) {
    free(sums->best);
    free(sums->negated);
    free(sums->values);
}

static Status weigh_sums(Weighing *weighing) {
    const Ground *ground = weighing->ground;
    Sums sums = sums_make(weighing);
    Status status = sum_strata(&sums);
    for (uint32_t i = 0; i < ground->answers && status == STATUS_OK; i++)
        weighing->values[i] = sums.values[i];
    if (status == STATUS_OK && weighing->gradients) status = find_slopes(&sums);
    sums_free(&sums);
    return status;
}

static Status best_of_sums(Weighing *weighing, BestWayFound *found, void *context) {
    const Ground *ground = weighing->ground;
    Sums sums = sums_make(weighing);
    Status status = sum_strata(&sums);
    for (size_t i = 0; i < ground->nodes.count; i++)
        if (sums.values[i] == sums.algebra.zero) sums.best[i] = NO_WAY;
    for (uint32_t i = 0; i < ground->answers && status == STATUS_OK; i++) {
        BestWay way = {ground, i, sums.values[i], sums.best};
        status = found(context, &way);
    }
    sums_free(&sums);
    return status;
}

Status weigh_best(Weighing *weighing, BestWayFound *found, void *context) {
    switch (weighing->semiring) {
    case SEMIRING_MAX_PROD:
    case SEMIRING_MIN_PLUS: return best_of_sums(weighing, found, context);
    case SEMIRING_PROB:
    case SEMIRING_EXACT:
    case SEMIRING_TOPK:
    case SEMIRING_SAMPLE: return weigh_best_worlds(weighing, found, context);
    default:
        fail(STATUS_VALUE, "a program over this semiring prefers no way to another");
        return fail_help("max_prod, min_plus, exact, topk, sample and prob do");
    }
}

Status ground_weigh(Weighing *weighing) {
    switch (weighing->semiring) {
    case SEMIRING_EXACT: return weigh_exact(weighing);
    case SEMIRING_TOPK: return weigh_topk(weighing);
    case SEMIRING_SAMPLE: return weigh_sample(weighing);
    default: return weigh_sums(weighing);
    }
}
