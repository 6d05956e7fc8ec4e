// Going through a plan: nested loops over the rows of its steps.
#include <stdlib.h>

#include "logic/expression.h"
#include "logic/profile.h"
#include "logic/room.h"
#include "logic/run.h"

static Status step_run(Run *run, uint32_t at);

static Status tick(Run *run) {
    if (LIKELY(++run->ticks % ROOM_ROWS)) return STATUS_OK;
    return room_ask(run->store);
}

static inline Datum term_value(const Run *run, const Term *term) {
    return term->kind == TERM_CONSTANT ? term->value : run->variables[term->value];
}

static void values_gather(const Run *run, const Step *step, Datum *values) {
    for (Columns left = step->bound; left; left &= left - 1) {
        int column = __builtin_ctz(left);
        values[column] = term_value(run, &step->goal->terms[column]);
    }
}

// The row's values go to the variables; false when a variable that stands twice would differ.
static inline bool row_bind(Run *run, const Step *step, const Table *table, uint32_t row) {
    const Term *terms = step->goal->terms;
    for (Columns left = step->binds; left; left &= left - 1) {
        int column = __builtin_ctz(left);
        run->variables[terms[column].value] = table->columns[column][row];
    }
    for (Columns left = step->repeats; left; left &= left - 1) {
        int column = __builtin_ctz(left);
        if (run->variables[terms[column].value] != table->columns[column][row]) return false;
    }
    return true;
}

// Goes on with this row; *taken: it fits.
static inline Status row_enter(Run *run, uint32_t at, const Table *table, uint32_t row,
                               bool *taken) {
    const Step *step = &run->plan->steps[at];
    *taken = !table_is_dead(table, row) && row_bind(run, step, table, row);
    if (!*taken) return STATUS_OK;
    run->path[step->position] = row;
    TRY(tick(run));
    return step_run(run, at + 1);
}

// Rows of this height are as if they were not there.
static inline bool is_high(const Run *run, const Step *step, const Table *table, uint32_t row) {
    return step->heights && table == step->table && step->heights[row] >= run->below;
}

// Rows of a table that a step goes through, and the index that finds them by their bound columns.
typedef struct RowRange {
    const Table *table;
    const Index *index;
    uint32_t low, high;
} RowRange;

static Status rows_scan(Run *run, uint32_t at, const RowRange *rows) {
    const Step *step = &run->plan->steps[at];
    ASSERT(rows->high <= rows->table->count);
    for (uint32_t row = rows->low; row < rows->high && !run->done; row++) {
        bool taken;
        if (is_high(run, step, rows->table, row)) continue;
        TRY(row_enter(run, at, rows->table, row, &taken));
        if (taken && step->once) break;
    }
    return STATUS_OK;
}

static uint32_t row_find(const Run *run, const Step *step, const Table *table, const Index *index) {
    Datum values[ARITY_MAX];
    values_gather(run, step, values);
    return index ? index_first(table, index, values) : table_find(table, values);
}

static Status rows_find(Run *run, uint32_t at, const RowRange *rows) {
    const Step *step = &run->plan->steps[at];
    ASSERT(rows->high <= rows->table->count);
    uint32_t row = row_find(run, step, rows->table, rows->index);
    while (row < rows->high && !run->done) { // ROW_NONE is beyond every row
        bool taken = false;
        if (row >= rows->low && !is_high(run, step, rows->table, row))
            TRY(row_enter(run, at, rows->table, row, &taken));
        if ((taken && step->once) || !rows->index) break;
        row = index_next(rows->index, row);
    }
    return STATUS_OK;
}

static Status rows_run(Run *run, uint32_t at, const RowRange *rows) {
    if (rows->low >= rows->high) return STATUS_OK;
    bool scan = !run->plan->steps[at].bound && rows->table->arity > 0;
    return scan ? rows_scan(run, at, rows) : rows_find(run, at, rows);
}

static Status atom_run(Run *run, uint32_t at) {
    const Step *step = &run->plan->steps[at];
    ASSERT(step->table != NULL && step->high <= step->table->count);
    RowRange own = {step->table, step->index, step->low, step->high};
    TRY(rows_run(run, at, &own));
    if (LIKELY(!step->extra)) return STATUS_OK;
    RowRange extra = {step->extra, step->extra_index, 0, step->extra->count};
    return rows_run(run, at, &extra);
}

// All columns are bound and all rows take part.
static bool row_has(const Run *run, const Step *step) {
    Datum values[ARITY_MAX];
    values_gather(run, step, values);
    return table_has(step->table, values);
}

static bool any_row(const Run *run, const Step *step) {
    if (step->low >= step->high) return false;
    bool scan = !step->bound && step->table->arity > 0;
    bool whole = !scan && !step->index && step->low == 0 && step->high == step->table->count;
    if (whole) return row_has(run, step);
    uint32_t row = scan ? step->low : row_find(run, step, step->table, step->index);
    while (row < step->high) {
        if (row >= step->low && !table_is_dead(step->table, row)) return true;
        if (scan)
            row++;
        else if (step->index)
            row = index_next(step->index, row);
        else
            break;
    }
    return false;
}

static Status bind_run(Run *run, uint32_t at) {
    const Step *step = &run->plan->steps[at];
    ASSERT(step->goal->variable < run->plan->rule->variable_count);
    Datum value;
    TRY(expression_value(run->store, step->goal->left, run->variables, &value));
    if (!step->tests) {
        run->variables[step->goal->variable] = value;
    } else {
        int order;
        Datum has = run->variables[step->goal->variable];
        if (!constant_compare(&run->store->constants, has, value, &order) || order != 0)
            return STATUS_OK;
    }
    return step_run(run, at + 1);
}

static Status members_run(Run *run, uint32_t at) {
    const Step *step = &run->plan->steps[at];
    uint32_t variable = step->goal->variable;
    ASSERT(variable < run->plan->rule->variable_count);
    SCOPED_MEMORY DatumList list = {0};
    Status status = expression_members(run->store, step->goal->left, run->variables, &list);
    Datum wanted = run->variables[variable];
    for (uint32_t i = 0; i < list.count && status == STATUS_OK && !run->done; i++) {
        if (wanted != CONSTANT_NONE && wanted != list.items[i]) continue;
        run->variables[variable] = list.items[i];
        run->path[step->position] = i;
        status = step_run(run, at + 1);
    }
    run->variables[variable] = wanted;
    return status;
}

static Status step_take(Run *run, uint32_t at) {
    if (at == run->plan->count) return run->found(run);
    const Step *step = &run->plan->steps[at];
    bool holds = false;
    switch (step->goal->kind) {
    case GOAL_ATOM: return atom_run(run, at);
    case GOAL_BIND: return bind_run(run, at);
    case GOAL_MEMBER: return members_run(run, at);
    case GOAL_NOT: holds = !any_row(run, step); break;
    case GOAL_COMPARE: TRY(comparison_holds(run->store, step->goal, run->variables, &holds)); break;
    default: TRY(expression_test(run->store, step->goal->left, run->variables, &holds));
    }
    return holds ? step_run(run, at + 1) : STATUS_OK;
}

static void time_passes_to(Run *run, uint32_t at) {
    uint64_t now = profile_clock();
    run->costs[run->current].nanoseconds += now - run->since;
    run->since = now;
    run->current = at;
}

static Status step_take_timed(Run *run, uint32_t at) {
    ASSERT(at <= run->plan->count);
    uint32_t before = run->current;
    run->costs[at].calls++;
    time_passes_to(run, at);
    Status status = step_take(run, at);
    time_passes_to(run, before);
    return status;
}

static Status step_run(Run *run, uint32_t at) {
    return LIKELY(!run->costs) ? step_take(run, at) : step_take_timed(run, at);
}

Status plan_run(Run *run) {
    ASSERT(run->store && run->found && run->plan->positions <= POSITIONS_MAX);
    if (run->costs) run->since = profile_clock();
    return step_run(run, 0);
}

void run_head(const Run *run, Datum *values) {
    const Rule *rule = run->plan->rule;
    ASSERT(rule->arity <= ARITY_MAX);
    for (uint32_t i = 0; i < rule->arity; i++)
        values[i] =
            rule->head[i].kind == TERM_ANY ? CONSTANT_NONE : term_value(run, &rule->head[i]);
}
