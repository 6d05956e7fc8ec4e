// What the files of the check that deal with logic programs share.
#ifndef CHECK_LOGIC_CHECKER_H
#define CHECK_LOGIC_CHECKER_H

#include "check/checker.h"
#include "check/logic.h"

// logic_names.c
bool word_is_capital(const Word *word);                           // its first letter is
bool word_is_long(const Word *word);                              // more than one letter
bool logic_is_constant(const Checker *checker, const Word *word); // declared, or in a fact
bool logic_is_member(const Checker *checker, const Word *word);   // declared
// The relation that a call of this name means; NULL: it is something else.
Binding *logic_relation(Checker *checker, const Node *call);
void logic_declare(Checker *checker);           // relations and entity types
void logic_declare_heads(Checker *checker);     // relations that only rules declare
void logic_declare_constants(Checker *checker); // what facts mention
// The names in a fact mean constants from here on. `ahead`: its text is not reached yet; only names
// that could not be taken for a rule's variables count: capitals of more than one letter.
void logic_note_fact(Checker *checker, const Node *call, bool ahead);
void logic_note_argument(Checker *checker, const Node *value, bool ahead); // one of its arguments
ColumnKind column_kind(const TypeNode *type);
void check_relation(Checker *checker, Node *node);

// A name that nothing else has and that an entity type declares becomes the text it stands for.
bool logic_take_member(Checker *checker, Node *node);

// Whether what stands in the brackets behind `object`, at this dimension, is the name of an entity:
// declared, of the embedding that it is, or in brackets of a relation or of an embedding of a type
// any that a fact has mentioned.
bool logic_is_place(Checker *checker, const Node *object, const Node *place, size_t dimension);
bool logic_names_relation(Checker *checker, const Node *node);
bool logic_is_embedding(Checker *checker, const Node *object);
bool logic_takes_any_name(Checker *checker, const Node *object); // an embedding of `auto`

// logic.c
void node_make_string(Node *node); // a NAME becomes the text that it is
// A call of a relation where a statement stands is a fact: true when it was one, or was meant to be
// and is reported.
bool check_fact(Checker *checker, Node *statement);
void check_weighted_fact(Checker *checker, Node *node); // one that is written as a FACT
void check_drawn(Checker *checker, Node *node);
void check_rule(Checker *checker, Node *node);
void check_retract(Checker *checker, Node *node);
void check_query(Checker *checker, Node *node, bool statement);
void check_ask(Checker *checker, Node *node); // as a statement
// A value is used: queries in its last places are not statements of their own.
void query_use_value(Node *node);

// logic_terms.c
typedef enum ClauseKind { CLAUSE_FACT, CLAUSE_RULE, CLAUSE_QUERY, CLAUSE_RETRACT } ClauseKind;
typedef struct ClauseCheck {
    Checker *checker;
    Clause *clause;
    ClauseKind kind;
    bool whole;         // a query whose answers are whole rows: what is open is a variable
    bool older;         // a rule that uses columns' names as its variables
    const Word *places; // of a DRAWN: the names of its tensor's dimensions
    size_t place_count;
} ClauseCheck;
// The number of the dimension that an argument names, or -1.
int clause_place(const ClauseCheck *check, const Node *value);
// count, sum, min, max or avg, of which this is a call with one argument; or NULL.
const char *aggregate_of(const Node *node);
// Whether a column says that the variable is one number, text or name, once atoms are checked.
bool variable_is_single(const Clause *clause, int variable);
int clause_variable_hidden(ClauseCheck *check); // a new one that has no name
// What the arguments of an atom mean; `head`: aggregates may stand in them.
void check_atom(ClauseCheck *check, AtomNode *atom, bool head);
// A name as an argument: a VARIABLE, CONSTANT, NAME or ANY; VALUE: a variable of the program.
int term_kind_of(ClauseCheck *check, const Word *word);
size_t relation_columns(const Node *declaration);              // how many
int clause_variable_get(ClauseCheck *check, const Word *word); // makes it when it is new

// logic_rules.c: variables without values, cycles through `not`, what is not monotone, in all rules
// of the files.
void check_logic_programs(ModuleTable *table);

// logic_types.c
// What columns say of the variables of a clause whose atoms are checked.
void check_clause_types(ClauseCheck *check);

#endif
