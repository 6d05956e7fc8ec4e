// Logic programs at run time: the store of an interpreter, values as constants, and the code of
// declarations, facts and queries. The engine is logic/; what it cannot compute it asks here.
#ifndef REASON_REASON_H
#define REASON_REASON_H

#include "check/logic.h"
#include "eval/code.h"
#include "eval/subscripts.h"
#include "value/object.h"

// A function that the engine calls: of a rule for as long as the store, of a query while it runs.
typedef struct HostFunction {
    Value function;
    size_t count; // of parameters
} HostFunction;

// The weights of a relation's facts: rows with the numbers of their weights.
typedef struct FactWeights {
    const Relation *relation;
    Table *rows;
    VECTOR(uint32_t) numbers;
} FactWeights;

typedef struct RuleWeight {
    SourcePos at; // where the rule is written
    uint32_t number;
} RuleWeight;

// What a weight is of its value: the whole, or one element of a tensor.
typedef struct WeightPart {
    int64_t element; // -1: the whole
    uint64_t group;  // of facts that exclude each other the same; 0: none
} WeightPart;

typedef struct Weights {
    Value values; // a list; ABSENT: the weight is gone
    VECTOR(WeightPart) parts;
    uint64_t groups; // that were made
    VECTOR(FactWeights) facts;
    VECTOR(RuleWeight) rules;
} Weights;

typedef struct Reasoner {
    Interp *interp;
    Store *store;
    bool busy;                    // the engine runs: it cannot be asked from a rule's function
    VECTOR(StructType *) answers; // the types of answers, rooted
    VECTOR(HostFunction *) hosts; // of rules
    VECTOR(char *) words;         // that the types name
    Weights weights;
    VECTOR(Handle *) embeddings; // of entity types, in the order in which they were made
} Reasoner;

Reasoner *reasoner_get(Interp *interp); // makes it when it is first needed
// The engine is about to run: a failure when it does already.
Status reasoner_enter(Reasoner *reasoner) MUST_USE;
void reasoner_leave(Reasoner *reasoner);

// constants.c. `what` is what holds the value, for messages.
Status constant_of_value(Reasoner *reasoner, Value value, const char *what, Datum *out) MUST_USE;
Value value_of_constant(const Reasoner *reasoner, Datum constant); // a new reference

// relations.c
extern const HandleType handle_relation; // payload: Relation; its store is the interpreter's
Value value_of_relation(Relation *relation);
// A list of the rows of a table; of one column the values themselves, else tuples.
Value rows_of_table(const Reasoner *reasoner, const Table *table);

// weights.c
void weights_start(Reasoner *reasoner);
void weights_free(Weights *weights);
// The value of a weight's expression: a number or a tensor of one.
Value weight_eval(Frame *frame, const Code *code);
typedef struct Weight {
    Value value;
    WeightPart part;
} Weight;
static inline Weight weight_whole(Value value) {
    return (Weight){value, {-1, 0}};
}
// Take the weight; ABSENT: the fact has none from here on.
void weight_set_fact(Reasoner *reasoner, const Relation *relation, const Datum *values,
                     Weight weight);
void weight_set_rule(Reasoner *reasoner, SourcePos at, Value weight);
// The tensors of which weights are elements, each read once.
typedef struct WeightRead {
    const Tensor *tensor;
    double *numbers;
} WeightRead;
typedef VECTOR(WeightRead) WeightReads;
Status weight_read(const Weights *weights, uint32_t number, WeightReads *reads,
                   double *out) MUST_USE;
void weight_reads_free(WeightReads *reads);
// Facts that weigh nothing: the weight of one that is stated again or retracted goes.
bool fact_assert(Reasoner *reasoner, Relation *relation, const Datum *values); // it is new
void fact_retract(Reasoner *reasoner, Relation *relation, const Datum *values);
// Numbers of weights in the list of values; negative: there is none.
int64_t weight_of_fact(void *reasoner, const Relation *relation, const Datum *values);
bool weight_in_relation(void *reasoner, const Relation *relation); // of some fact
int64_t weight_of_rule(void *reasoner, const Rule *rule);
uint64_t weight_group(void *reasoner, uint32_t number);
uint64_t weight_group_new(Reasoner *reasoner);

// files.c: facts with their weights, of one relation or of all (NULL); *added: how many are new.
Status reasoner_save_facts(Reasoner *reasoner, Relation *only, const char *path) MUST_USE;
Status reasoner_load_facts(Reasoner *reasoner, Relation *only, const char *path,
                           uint64_t *added) MUST_USE;

// What a query gives.
typedef struct Found {
    Table *answers;
    Value scores;    // of a program block: a list; else ABSENT
    Value nothing;   // the score of what has no way, a number
    Text *explained; // how they are found, of `explain`, or the best ways to them; else NULL
} Found;

// weighed.c: the answers to a query and a list of what they weigh by a program block.
Status query_weigh(Reasoner *reasoner, Rule *rule, const Datum *initial, Value program,
                   Found *out) MUST_USE;

// Why the answers hold: of each the best way in words.
Status query_best(Reasoner *reasoner, Rule *rule, const Datum *initial, Value program,
                  Text *out) MUST_USE;

// tensors.c
extern const HandleTensor relation_tensor;
// The entity type of a column, declared or by the rules that give it; NULL: it has none.
Relation *column_type(const Relation *relation, uint32_t column);
// The members of a type, each in the row of its place. The engine is entered.
Status type_members(Store *store, Relation *type, Table **out) MUST_USE;

// describe.c: relation Parent(x, y), 3 facts, ...
void relation_describe(const Relation *relation, Text *out);
void relation_list_facts(const Store *store, const Relation *relation, Text *out);
void store_list_rules(const Store *store, Text *out);
void store_report(const Store *store, Text *out); // what each relation takes; nothing without any

// An argument of a fact or query: a constant, or code whose value it is.
typedef struct ArgumentCode {
    Datum constant;
    const Code *code; // NULL: the constant
    Span span;
} ArgumentCode;

// facts.c
ArgumentCode *lower_arguments(Lowering *lowering, const AtomNode *atom);
Status argument_value(Frame *frame, Reasoner *reasoner, const ArgumentCode *argument,
                      Datum *out) MUST_USE;

#endif
