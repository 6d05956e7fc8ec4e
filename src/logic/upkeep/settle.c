// One component: rows are looked at from the lowest. One that has lost its proof and has another is
// raised above that, and looked at again when its turn comes; one without goes. A row that comes is
// there at once and looked at again in its turn, if anything has fallen meanwhile. What has had its
// turn rests on lower rows that have had theirs, and stays.
#include "logic/upkeep/settle.h"

#include <stdlib.h>

#include "logic/upkeep/groups.h"
#include "logic/upkeep/prove.h"

enum { STEP = 1 << 10 };       // between a row that comes, or is raised, and the row below it
enum { SETTLED = UINT32_MAX }; // an offer that has had its turn

// --- rows that come

// Rows that a run has found: the number of the relation, the height in two parts, the values.
static void head_note(Upkeep *upkeep, uint32_t number, const Datum *values, Height height) {
    uint32_t arity = upkeep->kept.items[number].relation->arity;
    VECTOR_PUSH(&upkeep->heads, number);
    VECTOR_PUSH(&upkeep->heads, (Datum)(height >> 32));
    VECTOR_PUSH(&upkeep->heads, (Datum)height);
    for (uint32_t i = 0; i < arity; i++) VECTOR_PUSH(&upkeep->heads, values[i]);
}

static Status head_is_proved(Run *run) {
    Upkeep *upkeep = run->context;
    Datum values[ARITY_MAX];
    Height height = path_height(run);
    upkeep->steps++;
    run_head(run, values);
    height = height > upkeep->at.height ? height : upkeep->at.height;
    head_note(upkeep, upkeep->rule->relation, values, height + STEP);
    return STATUS_OK;
}

static const Direction rising = {from_gained, head_is_proved};

static bool is_new(const Kept *kept, uint32_t row) {
    return row >= kept->before;
}

// A row that is there already may come in an earlier round than before; of rows that have come or
// gone in the stratum this is known.
static void row_offer(Upkeep *upkeep, uint32_t number, const Datum *values, Height height) {
    Kept *kept = &upkeep->kept.items[number];
    Relation *relation = kept->relation;
    uint32_t row = table_find(relation->derived, values);
    if (row == ROW_NONE) {
        row = table_append(relation->derived, values);
        VECTOR_PUSH(&relation->heights, height);
        VECTOR_PUSH(&kept->offers, upkeep->fallen);
        queue_push(&upkeep->queue, (Entry){height, number, row});
        return;
    }
    Height *now = &relation->heights.items[row];
    uint32_t *offer = is_new(kept, row) ? &kept->offers.items[row - kept->before] : NULL;
    bool waits = offer ? *offer != SETTLED : row_is_in(kept->raised, &row);
    if (!waits && upkeep->at.height == 0 && *now > 0) row_note(&relation->loose, relation, values);
    if (!waits || *now <= upkeep->at.height || *now <= height) return;
    *now = height;
    if (offer) *offer = upkeep->fallen;
    queue_push(&upkeep->queue, (Entry){height, number, row});
}

static void offers_take(Upkeep *upkeep) {
    Datum values[ARITY_MAX];
    const DatumList *heads = &upkeep->heads;
    for (size_t at = 0; at < heads->count;) {
        const Datum *head = heads->items + at;
        uint32_t arity = upkeep->kept.items[head[0]].relation->arity;
        memcpy(values, head + 3, arity * sizeof *values);
        row_offer(upkeep, head[0], values, (Height)head[1] << 32 | head[2]);
        at += arity + 3;
    }
    upkeep->heads.count = 0;
}

// --- rows in their turn

static void row_remove(Upkeep *upkeep, Kept *kept, const Datum *values) {
    Relation *relation = kept->relation;
    table_remove(relation->derived, upkeep->at.row);
    if (!is_new(kept, upkeep->at.row)) row_note(&relation->lost, relation, values);
    if (upkeep->lowest != HEIGHT_NONE) VECTOR_PUSH(&upkeep->removed, upkeep->at);
    upkeep->fallen++;
}

static void row_raise(Upkeep *upkeep, Kept *kept, Height height) {
    uint32_t row = upkeep->at.row;
    kept->relation->heights.items[row] = height;
    if (is_new(kept, row)) kept->offers.items[row - kept->before] = upkeep->fallen;
    if (!kept->raised) kept->raised = table_new(1, 1);
    table_append(kept->raised, &row);
    queue_push(&upkeep->queue, (Entry){height, upkeep->at.relation, row});
    upkeep->fallen++;
}

// The row has no proof from rows below it. It is raised only once: rows that rest on nothing but
// each other would rise for ever. What proof it may have is left for the end then.
static Status row_fall(Upkeep *upkeep, const Datum *values) {
    Kept *kept = &upkeep->kept.items[upkeep->at.relation];
    bool stays = upkeep->lowest != HEIGHT_NONE && !row_is_in(kept->raised, &upkeep->at.row);
    upkeep->high = stays ? upkeep->lowest + STEP : HEIGHT_NONE;
    Status status = STATUS_OK;
    if (!is_new(kept, upkeep->at.row)) // nothing rests on what has not had its turn
        status = heads_follow(upkeep, heads_falling, kept->relation, GOAL_ATOM, values);
    if (stays) // it takes part as it was until here
        row_raise(upkeep, kept, upkeep->high);
    else
        row_remove(upkeep, kept, values);
    upkeep->high = HEIGHT_NONE;
    return status;
}

static Status row_stay(Upkeep *upkeep, const Datum *values) {
    const Kept *kept = &upkeep->kept.items[upkeep->at.relation];
    Relation *relation = kept->relation;
    if (upkeep->at.height > 0) row_note(&relation->loose, relation, values);
    if (!is_new(kept, upkeep->at.row)) return STATUS_OK;
    kept->offers.items[upkeep->at.row - kept->before] = SETTLED;
    if (row_is_in(relation->lost, values))
        table_remove(relation->lost, table_find(relation->lost, values));
    else
        row_note(&relation->gained, relation, values);
    TRY(heads_follow(upkeep, rising, relation, GOAL_ATOM, values));
    offers_take(upkeep);
    return STATUS_OK;
}

static Status row_look(Upkeep *upkeep, Entry entry) {
    const Kept *kept = &upkeep->kept.items[entry.relation];
    const Relation *relation = kept->relation;
    Datum values[ARITY_MAX];
    if (table_is_dead(relation->derived, entry.row)) return STATUS_OK;
    if (relation->heights.items[entry.row] != entry.height) return STATUS_OK;
    upkeep->at = entry;
    table_read(relation->derived, entry.row, values);
    bool fresh =
        is_new(kept, entry.row) && kept->offers.items[entry.row - kept->before] == upkeep->fallen;
    if (fresh || row_is_in(relation->facts, values)) return row_stay(upkeep, values);
    TRY(proofs_find(upkeep, values, HEIGHT_NONE));
    return upkeep->lowest < entry.height ? row_stay(upkeep, values) : row_fall(upkeep, values);
}

// --- where it begins

// Facts of the relations themselves.
static void facts_begin(Upkeep *upkeep) {
    Datum values[ARITY_MAX];
    for (uint32_t i = 0; i < upkeep->kept.count; i++) {
        const Relation *relation = upkeep->kept.items[i].relation;
        for (uint32_t j = 0; relation->touched && j < relation->touched->count; j++) {
            table_read(relation->touched, j, values);
            if (row_is_in(relation->facts, values)) {
                row_offer(upkeep, i, values, 0);
                continue;
            }
            uint32_t row = table_find(relation->derived, values);
            if (row == ROW_NONE) continue;
            queue_push(&upkeep->queue, (Entry){relation->heights.items[row], i, row});
        }
    }
}

// The groups that have changed, as they are now.
static Status groups_begin(Upkeep *upkeep) {
    Datum values[ARITY_MAX];
    TRY(groups_find(upkeep));
    groups_fall(upkeep);
    for (size_t i = 0; i < upkeep->rules.count; i++) {
        RuleUpkeep *rule = &upkeep->rules.items[i];
        for (uint32_t group = 0; rule->groups && group < rule->groups->count; group++) {
            Table *row;
            table_read(rule->groups, group, values);
            TRY(group_row(upkeep, rule, values, &row));
            if (row->count > 0) table_read(row, 0, values);
            if (row->count > 0) row_offer(upkeep, rule->relation, values, STEP);
            table_free(row);
        }
    }
    return STATUS_OK;
}

// What other components have lost and gained.
static Status changes_begin(Upkeep *upkeep) {
    for (size_t i = 0; i < upkeep->store->relations.count; i++) {
        const Relation *relation = upkeep->store->relations.items[i];
        if (relation->stratum > upkeep->stratum || is_within(upkeep, relation)) continue;
        TRY(rows_follow(upkeep, heads_falling, relation, relation->lost, GOAL_ATOM));
        TRY(rows_follow(upkeep, heads_falling, relation, relation->gained, GOAL_NOT));
        TRY(rows_follow(upkeep, rising, relation, relation->gained, GOAL_ATOM));
        TRY(rows_follow(upkeep, rising, relation, relation->lost, GOAL_NOT));
        offers_take(upkeep);
    }
    return STATUS_OK;
}

static Status queue_follow(Upkeep *upkeep) {
    while (upkeep->queue.count > 0) TRY(row_look(upkeep, queue_pop(&upkeep->queue)));
    return STATUS_OK;
}

// What was taken away and may have a proof from what is left.
static Status removed_begin(Upkeep *upkeep) {
    Datum values[ARITY_MAX];
    for (size_t i = 0; i < upkeep->removed.count; i++) {
        upkeep->at = upkeep->removed.items[i];
        upkeep->at.height = HEIGHT_NONE; // any proof will do
        const Table *derived = upkeep->kept.items[upkeep->at.relation].relation->derived;
        table_read(derived, upkeep->at.row, values);
        if (table_has(derived, values)) continue;
        TRY(proofs_find(upkeep, values, HEIGHT_NONE));
        if (upkeep->lowest != HEIGHT_NONE)
            row_offer(upkeep, upkeep->at.relation, values, upkeep->lowest + STEP);
    }
    return STATUS_OK;
}

static Status changes_follow(Upkeep *upkeep) {
    upkeep->at = (Entry){0};
    TRY(groups_begin(upkeep));
    facts_begin(upkeep);
    TRY(changes_begin(upkeep));
    TRY(queue_follow(upkeep));
    TRY(removed_begin(upkeep));
    return queue_follow(upkeep);
}

Status component_settle(Upkeep *upkeep, Relation *const *relations, size_t count) {
    stratum_begin(upkeep, relations, count);
    for (size_t i = 0; i < count; i++) {
        relations[i]->unordered = true;
        VECTOR_FREE(&relations[i]->rounds);
    }
    Status status = changes_follow(upkeep);
    stratum_end(upkeep);
    return status;
}
