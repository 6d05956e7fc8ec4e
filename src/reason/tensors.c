// A relation as a tensor of bools: a dimension for each column, a place for each member of the
// column's entity type, or for each number up to the largest of an int column. It is made of the
// rows that hold, and written by facts.
#include <stdlib.h>

#include "eval/upper.h"
#include "logic/evaluate.h"
#include "reason/reason.h"
#include "tensor/compose.h"
#include "tensor/index.h"

// --- places

// Columns that were asked for their type on the way here: rules may go in circles.
typedef struct Asked {
    const Relation *relation;
    uint32_t column;
} Asked;
typedef VECTOR(Asked) AskedList;

static Relation *find_type(AskedList *asked, const Relation *relation, uint32_t column);

// The entity type that the atoms of a rule's body give a variable, or NULL.
static Relation *variable_type(AskedList *asked, const Rule *rule, uint32_t variable) {
    for (uint32_t g = 0; g < rule->goal_count; g++) {
        const Goal *goal = &rule->goals[g];
        if (goal->kind != GOAL_ATOM) continue;
        for (uint32_t i = 0; i < goal->relation->arity; i++) {
            bool here = goal->terms[i].kind == TERM_VARIABLE && goal->terms[i].value == variable;
            Relation *type = here ? find_type(asked, goal->relation, i) : NULL;
            if (type) return type;
        }
    }
    return NULL;
}

static Relation *find_type(AskedList *asked, const Relation *relation, uint32_t column) {
    if (relation->entities) return (Relation *)(uintptr_t)relation;
    if (relation->columns[column].type) return relation->columns[column].type;
    for (size_t i = 0; i < asked->count; i++)
        if (asked->items[i].relation == relation && asked->items[i].column == column) return NULL;
    VECTOR_PUSH(asked, ((Asked){relation, column}));
    for (size_t i = 0; i < relation->rules.count; i++) {
        const Rule *rule = relation->rules.items[i];
        if (rule->head[column].kind != TERM_VARIABLE) continue;
        Relation *type = variable_type(asked, rule, rule->head[column].value);
        if (type) return type;
    }
    return NULL;
}

// A column that is declared by a rule's head has the type of what the rules give it.
Relation *column_type(const Relation *relation, uint32_t column) {
    SCOPED_MEMORY AskedList asked = {0};
    return find_type(&asked, relation, column);
}

// The members of a type in the order of their places.
Status type_members(Store *store, Relation *type, Table **out) {
    TRY(store_complete(store, type));
    *out = relation_table(type);
    if ((*out)->dead > 0) table_compact(*out);
    return STATUS_OK;
}

static Status fail_untyped(const Relation *relation, uint32_t column) {
    const char *name = relation->columns[column].name;
    fail(STATUS_TYPE, "%s is not a tensor: its column `%s` is not of an entity type or int",
         relation->name, name[0] ? name : "_");
    return fail_help("a tensor has a place for each member of a type, as in relation R(x: Person)");
}

// Has a place for each number: it is an int column, or of rules that say nothing else.
static bool column_counts(const Relation *relation, uint32_t column) {
    ColumnKind kind = relation->columns[column].kind;
    return !column_type(relation, column) && (kind == COLUMN_INT || kind == COLUMN_ANY);
}

typedef struct Axes {
    Store *store;
    Relation *relation;
    Table *rows;              // that hold
    Table *members[RANK_MAX]; // of each column; NULL: of ints
    int64_t sizes[RANK_MAX];
    int64_t at[RANK_MAX]; // not negative, or PLACE_ALL
    Shape open;           // the sizes of the open dimensions
} Axes;

static Status fix_place(const Axes *axes, uint32_t column, int64_t place, int64_t *out) {
    int64_t count = axes->sizes[column];
    *out = place < 0 ? place + count : place;
    if (*out >= 0 && *out < count) return STATUS_OK;
    return fail(STATUS_INDEX, "index %lld is out of range for dimension %u of %s with size %lld",
                (long long)place, column, axes->relation->name, (long long)count);
}

// A place for each number from 0 to the largest in a column without members.
static Status find_size(Axes *axes, uint32_t column) {
    const ConstantTable *constants = &axes->store->constants;
    if (axes->members[column]) {
        axes->sizes[column] = table_live(axes->members[column]);
        return STATUS_OK;
    }
    for (uint32_t row = 0; row < axes->rows->count; row++) {
        if (table_is_dead(axes->rows, row)) continue;
        Datum value = table_at(axes->rows, row, column);
        if (constant_kind(constants, value) != CONSTANT_INT)
            return fail_untyped(axes->relation, column);
        int64_t number = constant_integer(constants, value);
        if (number < 0)
            return fail(STATUS_VALUE, "%s is not a tensor: %lld in its column `%s` is not a place",
                        axes->relation->name, (long long)number,
                        axes->relation->columns[column].name);
        if (number >= axes->sizes[column]) axes->sizes[column] = number + 1;
    }
    return STATUS_OK;
}

static Datum place_value(const Axes *axes, uint32_t column, int64_t place) {
    if (!axes->members[column]) return constant_int(&axes->store->constants, place);
    return table_at(axes->members[column], (uint32_t)place, 0);
}

static Status axes_read(Reasoner *reasoner, Relation *relation, const int64_t *at, Axes *axes) {
    *axes = (Axes){.store = reasoner->store, .relation = relation};
    if (relation->arity > RANK_MAX)
        return fail(STATUS_SHAPE, "%s has %u columns, but a tensor has at most %d dimensions",
                    relation->name, relation->arity, RANK_MAX);
    for (uint32_t i = 0; i < relation->arity; i++) {
        Relation *type = column_type(relation, i);
        if (!type && !column_counts(relation, i)) return fail_untyped(relation, i);
        if (type) TRY(type_members(axes->store, type, &axes->members[i]));
    }
    TRY(store_gather(axes->store, relation));
    axes->rows = relation_table(relation);
    for (uint32_t i = 0; i < relation->arity; i++) {
        TRY(find_size(axes, i));
        axes->at[i] = PLACE_ALL;
        if (at[i] != PLACE_ALL)
            TRY(fix_place(axes, i, at[i], &axes->at[i]));
        else
            axes->open.dims[axes->open.rank++] = axes->sizes[i];
    }
    return STATUS_OK;
}

// --- reading

typedef VECTOR(int64_t) Places;

static Status fail_member(const Axes *axes, uint32_t column, Datum value) {
    SCOPED_TEXT(text);
    constant_print(&axes->store->constants, value, &text);
    const char *type = column_type(axes->relation, column)->name;
    fail(STATUS_TYPE, "`%s` in column %u of %s is not %s %s", text_get(&text), column + 1,
         axes->relation->name, text_article(type), type);
    return STATUS_TYPE;
}

// The places of a row in the open dimensions.
static Status row_places(const Axes *axes, uint32_t row, Places *places) {
    int open = 0;
    for (uint32_t i = 0; i < axes->relation->arity; i++) {
        Datum value = table_at(axes->rows, row, i);
        if (axes->at[i] != PLACE_ALL) continue;
        int64_t place = axes->members[i] ? table_find(axes->members[i], &value)
                                         : constant_integer(&axes->store->constants, value);
        if (axes->members[i] && place == ROW_NONE) return fail_member(axes, i, value);
        VECTOR_PUSH(&places[open], place);
        open++;
    }
    return STATUS_OK;
}

// Calls row_places for each row that has the fixed places.
static Status collect_places(const Axes *axes, Places *places, bool *any) {
    Datum values[RANK_MAX];
    Columns fixed = 0;
    *any = false;
    for (uint32_t i = 0; i < axes->relation->arity; i++) {
        if (axes->at[i] == PLACE_ALL) continue;
        fixed |= 1u << i;
        values[i] = place_value(axes, i, axes->at[i]);
    }
    const Index *index = fixed ? table_index(axes->rows, fixed, axes->rows->count) : NULL;
    uint32_t row = index ? index_first(axes->rows, index, values) : 0;
    while (row != ROW_NONE && row < axes->rows->count) {
        if (!table_is_dead(axes->rows, row)) {
            TRY(row_places(axes, row, places));
            *any = true;
        }
        row = index ? index_next(index, row) : row + 1;
    }
    return STATUS_OK;
}

// true at the places, one vector for each dimension.
static Status mark_places(Tensor **tensor, const Places *places, int rank) {
    IndexItem items[RANK_MAX + 1];
    Status status = STATUS_OK;
    int made = 0;
    for (; made < rank && status == STATUS_OK; made++) {
        Shape shape = {.rank = 1, .dims = {(int64_t)places[made].count}};
        items[made] = (IndexItem){.kind = INDEX_TENSOR};
        status = tensor_from_integers(places[made].items, &shape, DTYPE_INT64, &items[made].tensor);
    }
    if (rank == 0) items[0] = (IndexItem){.kind = INDEX_ELLIPSIS};
    OpInput one = op_scalar((Scalar){.dtype = DTYPE_BOOL, .as.i = 1});
    if (status == STATUS_OK) status = index_set(tensor, items, rank > 0 ? rank : 1, one, true);
    while (made > 0) tensor_release(items[--made].tensor);
    return status;
}

static Status axes_tensor(const Axes *axes, Tensor **out) {
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(dtype),
                               .shape = axes->open,
                               .dtype = DTYPE_BOOL};
    Places places[RANK_MAX] = {0};
    bool any;
    SCOPED_TENSOR(tensor);
    TRY(op_with(OP_zeros, NULL, 0, &attributes, &tensor));
    Status status = collect_places(axes, places, &any);
    if (status == STATUS_OK && any) status = mark_places(&tensor, places, axes->open.rank);
    for (int i = 0; i < axes->open.rank; i++) VECTOR_FREE(&places[i]);
    TRY(status);
    return compose_give(&tensor, out);
}

static Status relation_read(Handle *handle, const int64_t *at, Tensor **out) {
    Reasoner *reasoner = reasoner_get(interp_running());
    Axes axes;
    TRY(reasoner_enter(reasoner));
    Status status = axes_read(reasoner, handle->payload, at, &axes);
    if (status == STATUS_OK) status = axes_tensor(&axes, out);
    reasoner_leave(reasoner);
    return status;
}

// --- writing

typedef struct Change {
    Datum values[RANK_MAX];
    bool add;
} Change;
typedef VECTOR(Change) Changes;

// What the numbers make different from what holds; rows that rules give stay.
static void find_changes(const Axes *axes, const uint8_t *wanted, Changes *out) {
    int64_t count = 1;
    for (int i = 0; i < axes->open.rank; i++) count *= axes->open.dims[i];
    for (int64_t n = 0; n < count; n++) {
        Change change = {.add = wanted[n]};
        int64_t rest = n;
        for (uint32_t i = axes->relation->arity; i-- > 0;) {
            int64_t size = axes->sizes[i], place = axes->at[i];
            if (place == PLACE_ALL) {
                place = rest % size;
                rest /= size;
            }
            change.values[i] = place_value(axes, i, place);
        }
        const Table *now = change.add ? axes->rows : axes->relation->facts;
        bool there = table_has(now, change.values);
        if (there != change.add) VECTOR_PUSH(out, change);
    }
}

static Status write_axes(Reasoner *reasoner, const Axes *axes, Tensor *value) {
    SCOPED_MEMORY uint8_t *wanted = memory_allocate((size_t)tensor_count(value) + 1);
    SCOPED_MEMORY Changes changes = {0};
    Status status = tensor_read_bools(value, wanted);
    if (status == STATUS_OK) find_changes(axes, wanted, &changes);
    for (size_t i = 0; i < changes.count; i++) {
        const Change *change = &changes.items[i];
        if (change->add)
            fact_assert(reasoner, axes->relation, change->values);
        else
            fact_retract(reasoner, axes->relation, change->values);
    }
    return status;
}

static Status relation_write(Handle *handle, const int64_t *at, Tensor *value) {
    Reasoner *reasoner = reasoner_get(interp_running());
    Axes axes;
    TRY(reasoner_enter(reasoner));
    Status status = axes_read(reasoner, handle->payload, at, &axes);
    if (status == STATUS_OK && axes.relation->entities)
        status = fail(STATUS_TYPE, "%s is an entity type: facts add to it", axes.relation->name);
    if (status == STATUS_OK) status = write_axes(reasoner, &axes, value);
    reasoner_leave(reasoner);
    return status;
}

// --- names

static Status fail_no_member(const Relation *type, const String *name) {
    return fail(STATUS_NAME, "`%.*s` is not %s %s", (int)name->length, name->bytes,
                text_article(type->name), type->name);
}

static Status type_place(Reasoner *reasoner, Relation *type, const String *name, int64_t *out) {
    Table *members;
    TRY(type_members(reasoner->store, type, &members));
    Datum value = constant_find_text(&reasoner->store->constants, name->bytes, name->length);
    uint32_t row = value == CONSTANT_NONE ? ROW_NONE : table_find(members, &value);
    if (row == ROW_NONE) return fail_no_member(type, name);
    *out = row;
    return STATUS_OK;
}

static Status relation_place(Handle *handle, int dim, const String *name, int64_t *out) {
    Reasoner *reasoner = reasoner_get(interp_running());
    const Relation *relation = handle->payload;
    Relation *type = column_type(relation, (uint32_t)dim);
    if (!type) return fail_untyped(relation, (uint32_t)dim);
    TRY(reasoner_enter(reasoner));
    Status status = type_place(reasoner, type, name, out);
    reasoner_leave(reasoner);
    return status;
}

static int relation_rank(const Handle *handle) {
    return (int)((const Relation *)handle->payload)->arity;
}

static uint64_t relation_version(const Handle *handle) {
    (void)handle;
    const Store *store = reasoner_get(interp_running())->store;
    return (store->version << 20) + store->rules.count;
}

// Past the largest number of an int column nothing holds.
static bool relation_open(const Handle *handle, int dim) {
    const Relation *relation = handle->payload;
    return column_counts(relation, (uint32_t)dim);
}

const HandleTensor relation_tensor = {.version = relation_version,
                                      .open = relation_open,
                                      .rank = relation_rank,
                                      .read = relation_read,
                                      .write = relation_write,
                                      .place = relation_place};

static Status fail_two_places(const String *name, const Relation *one, const Relation *other) {
    return fail(STATUS_NAME, "`%.*s` is %s %s and %s %s, with two places", (int)name->length,
                name->bytes, text_article(one->name), one->name, text_article(other->name),
                other->name);
}

// Of the types that have the member only those count that put it elsewhere, and the one that
// columns share only where no other has it.
static Status find_entity(Reasoner *reasoner, const String *name, int64_t *out) {
    const RelationList *relations = &reasoner->store->relations;
    Datum value = constant_find_text(&reasoner->store->constants, name->bytes, name->length);
    const Relation *found = NULL, *open = reasoner->store->open;
    bool types = false;
    for (size_t i = 0; i < relations->count; i++) {
        Table *members;
        if (!relations->items[i]->entities) continue;
        types = true;
        if (value == CONSTANT_NONE || relations->items[i] == open) continue;
        TRY(type_members(reasoner->store, relations->items[i], &members));
        uint32_t row = table_find(members, &value);
        if (row == ROW_NONE) continue;
        if (found && *out != row) return fail_two_places(name, found, relations->items[i]);
        found = relations->items[i];
        *out = row;
    }
    uint32_t row = found || !open ? ROW_NONE : table_find(relation_table(open), &value);
    if (row != ROW_NONE) {
        found = open;
        *out = row;
    }
    if (found) return STATUS_OK;
    return fail(STATUS_TYPE, "\"%.*s\" cannot be an index%s", (int)name->length, name->bytes,
                types ? ": no entity has that name" : "");
}

Status entity_position(const String *name, int64_t *out) {
    Reasoner *reasoner = reasoner_get(interp_running());
    TRY(reasoner_enter(reasoner));
    Status status = find_entity(reasoner, name, out);
    reasoner_leave(reasoner);
    return status;
}
