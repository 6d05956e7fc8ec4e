// Reductions of lists and tuples of plain numbers, in int64 and float64 as the numbers are: what
// tensors of them would be rounded to plays no part. Ints trap where they overflow.
#include "eval/numbers.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tensor/op.h"
#include "value/convert.h"
#include "value/items.h"

typedef struct Numbers {
    const Value *items;
    size_t count;
    bool any_float;
    const BuiltinCall *call;
} Numbers;

static double number_at(const Numbers *x, size_t i) {
    Value item = x->items[i];
    return item.kind == VALUE_FLOAT ? item.as.number : (double)item.as.integer;
}

static Value overflow(const Numbers *x, const char *what) {
    fail(STATUS_OVERFLOW, "the %s of these %zu ints does not fit in 64 bits", what, x->count);
    fail_help("ints are 64-bit; use floats for larger numbers");
    return value_fail();
}

// What was rounded off is added up next to the sum (Neumaier).
static double sum_floats(const Numbers *x) {
    double sum = 0, rest = 0;
    for (size_t i = 0; i < x->count; i++) {
        double item = number_at(x, i), next = sum + item;
        rest += fabs(sum) >= fabs(item) ? sum - next + item : item - next + sum;
        sum = next;
    }
    return isfinite(rest) ? sum + rest : sum;
}

static Value sum(const Numbers *x) {
    if (x->any_float) return value_float(sum_floats(x));
    ASSERT(x->count == 0 || x->items != NULL);
    __int128 total = 0;
    for (size_t i = 0; i < x->count; i++) total += x->items[i].as.integer;
    if (total < INT64_MIN || total > INT64_MAX) return overflow(x, "sum");
    return value_int((int64_t)total);
}

static Value prod(const Numbers *x) {
    double product = 1;
    int64_t exact = 1;
    bool zero = false, fits = true;
    for (size_t i = 0; i < x->count; i++) {
        product *= number_at(x, i);
        zero |= number_at(x, i) == 0;
        if (!x->any_float && fits)
            fits = !__builtin_mul_overflow(exact, x->items[i].as.integer, &exact);
    }
    if (x->any_float) return value_float(product);
    if (zero) return value_int(0);
    return fits ? value_int(exact) : overflow(x, "product");
}

static double mean_of(const Numbers *x) {
    return sum_floats(x) / (double)x->count;
}

static Value mean(const Numbers *x) {
    return value_float(mean_of(x));
}

static double variance(const Numbers *x) {
    double mean = mean_of(x), sum = 0;
    for (size_t i = 0; i < x->count; i++)
        sum += (number_at(x, i) - mean) * (number_at(x, i) - mean);
    ASSERT(x->count > 0);
    int correction = catalog_parameter(&x->call->row->signature, "correction");
    double less = (double)x->call->arguments[correction].as.integer;
    return sum / fmax((double)x->count - less, 0);
}

static Value var(const Numbers *x) {
    return value_float(variance(x));
}

static Value std(const Numbers *x) {
    return value_float(sqrt(variance(x)));
}

// The first nan, else the first largest (sign 1) or smallest (sign -1).
static size_t extreme(const Numbers *x, int sign) {
    ASSERT(x->count > 0);
    size_t best = 0;
    for (size_t i = 0; i < x->count; i++) {
        int order;
        if (isnan(number_at(x, i))) return i;
        if (value_order_numbers(x->items[i], x->items[best], &order) && order * sign > 0) best = i;
    }
    return best;
}

static Value max(const Numbers *x) {
    return x->items[extreme(x, 1)];
}
static Value min(const Numbers *x) {
    return x->items[extreme(x, -1)];
}
static Value argmax(const Numbers *x) {
    return value_int((int64_t)extreme(x, 1));
}
static Value argmin(const Numbers *x) {
    return value_int((int64_t)extreme(x, -1));
}

static int64_t nonzero(const Numbers *x) {
    int64_t count = 0;
    for (size_t i = 0; i < x->count; i++) count += number_at(x, i) != 0;
    return count;
}

static Value any(const Numbers *x) {
    return value_bool(nonzero(x) > 0);
}
static Value all(const Numbers *x) {
    return value_bool(nonzero(x) == (int64_t)x->count);
}
static Value count_nonzero(const Numbers *x) {
    return value_int(nonzero(x));
}

// Of numbers divided by a power of two near the largest, which is exact, so that squares neither
// overflow nor vanish.
static Value norm(const Numbers *x) {
    double p, most = 0, least = INFINITY, sum = 0;
    if (value_to_double(x->call->arguments[1], "norm: p", &p) != STATUS_OK) return value_fail();
    if (isnan(p)) {
        fail(STATUS_VALUE, "norm: p must be a number, but it is nan");
        return value_fail();
    }
    for (size_t i = 0; i < x->count; i++) {
        double size = fabs(number_at(x, i));
        if (isnan(size)) return value_float(NAN);
        most = fmax(most, size);
        least = fmin(least, size);
    }
    if (p == 0) return value_float((double)nonzero(x));
    if (isinf(p)) return value_float(p > 0 ? most : least);
    if (most == 0 || isinf(most)) return value_float(p > 0 ? most : 0);
    int exponent = ilogb(most);
    for (size_t i = 0; i < x->count; i++) sum += pow(ldexp(fabs(number_at(x, i)), -exponent), p);
    return value_float(ldexp(p == 2 ? sqrt(sum) : pow(sum, 1 / p), exponent));
}

static Value logsumexp(const Numbers *x) {
    double most = number_at(x, extreme(x, 1)), sum = 0;
    if (isnan(most) || isinf(most)) return value_float(most);
    for (size_t i = 0; i < x->count; i++) sum += exp(number_at(x, i) - most);
    return value_float(most + log(sum));
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static Value median(const Numbers *x) {
    ASSERT(x->count > 0);
    SCOPED_MEMORY double *sorted = memory_allocate(x->count * sizeof *sorted);
    bool any_nan = false;
    for (size_t i = 0; i < x->count; i++) {
        sorted[i] = number_at(x, i);
        any_nan |= isnan(sorted[i]);
    }
    if (!any_nan) qsort(sorted, x->count, sizeof *sorted, compare_doubles);
    size_t half = x->count / 2;
    double middle = x->count % 2 ? sorted[half] : sorted[half - 1] / 2 + sorted[half] / 2;
    return value_float(any_nan ? NAN : middle);
}

typedef struct Reducer {
    Value (*reduce)(const Numbers *x);
    bool of_none; // a list without numbers has a result too
} Reducer;

static const Reducer reducers[OP_COUNT] = {
    [OP_sum] = {sum, true},        [OP_prod] = {prod, true},
    [OP_mean] = {mean, false},     [OP_var] = {var, false},
    [OP_std] = {std, false},       [OP_max_along] = {max, false},
    [OP_min_along] = {min, false}, [OP_argmax] = {argmax, false},
    [OP_argmin] = {argmin, false}, [OP_any] = {any, true},
    [OP_all] = {all, true},        [OP_count_nonzero] = {count_nonzero, true},
    [OP_norm] = {norm, false},     [OP_logsumexp] = {logsumexp, false},
    [OP_median] = {median, false},
};

// The call wants one number of all: no dimension but the only one is named, none is kept.
static bool wants_one(const BuiltinCall *call) {
    int dim = catalog_parameter(&call->row->signature, "dim");
    int keepdim = catalog_parameter(&call->row->signature, "keepdim");
    Value along = call->arguments[dim];
    ASSERT(dim >= 0 && keepdim >= 0);
    bool only = along.kind == VALUE_ABSENT || along.as.integer == 0 || along.as.integer == -1;
    return only && !call->arguments[keepdim].as.boolean;
}

// A copy, with ones for what only a run has.
static const Value *without_measured(const Value *items, size_t count) {
    Value *copy = memory_allocate(count * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        uint64_t kind = value_kind_in_run(items[i]);
        bool measured = items[i].kind == VALUE_MEASURED;
        copy[i] = !measured             ? items[i]
                  : kind == VALUE_FLOAT ? value_float(1)
                                        : (Value){.kind = kind, .as.integer = 1};
    }
    return copy;
}

bool numbers_reduce(const BuiltinCall *call, Value *result) {
    const Reducer *reducer = &reducers[call->row->id];
    Value list = call->arguments[0];
    if (!reducer->reduce || (list.kind != VALUE_LIST && list.kind != VALUE_TUPLE)) return false;
    Numbers x = {.items = list.as.list->items, .count = list.as.list->count, .call = call};
    const Value *measured = NULL;
    for (size_t i = 0; i < x.count; i++) {
        uint64_t kind = value_kind_in_run(x.items[i]);
        if (x.items[i].kind == VALUE_MEASURED) measured = &x.items[i];
        if (kind != VALUE_INT && kind != VALUE_FLOAT && kind != VALUE_BOOL) return false;
        x.any_float |= kind == VALUE_FLOAT;
    }
    if (!wants_one(call) || (x.count == 0 && !reducer->of_none)) return false;
    if (UNLIKELY(measured != NULL)) x.items = without_measured(x.items, x.count);
    *result = reducer->reduce(&x);
    if (LIKELY(!measured)) return true;
    free((void *)(uintptr_t)x.items);
    *result = value_measured(result->kind, measured->as.measured.at);
    return true;
}
