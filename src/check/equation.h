// A tensor equation as check makes it out of the text: which names are indexes, where sums stand,
// and what has to be evaluated first. Inference and the evaluator work on it alike.
#ifndef CHECK_EQUATION_H
#define CHECK_EQUATION_H

#include "base/text.h"
#include "parser/ast.h"

enum { INDEXES_MAX = 52 }; // as many as an Einstein sum has letters
typedef uint64_t IndexSet; // a bit for each of Equation.names

static inline IndexSet index_bit(int index) {
    return (IndexSet)1 << index;
}

// A summand of a position such as 2*x + dx - 1. Values are numbers of Equation.values, -1: none.
typedef struct IndexPart {
    int index;  // -1: the factor alone
    int factor; // -1: 1
    bool negative;
} IndexPart;

// What stands between the commas of A[...].
typedef struct Position {
    enum {
        POSITION_INDEX,
        POSITION_SUM,
        POSITION_VALUE,
        POSITION_SLICE,
        POSITION_STATE, // of the loop's index in a term that is an earlier value of the left side
    } kind;
    int64_t offset;        // of a program's left side: the first place that this gives a value
    int index;             // INDEX; SLICE: one without a name, the same for both sides
    int value;             // VALUE
    int start, stop, step; // SLICE
    IndexPart *parts;      // SUM
    size_t count;
    int divisor; // SUM: the floor of the sum divided by it
    Span span;
} Position;

// A[i, j]: a value with an index for each of its dimensions.
typedef struct EquationTerm {
    int object; // of Equation.values
    Position *positions;
    size_t count;
    IndexSet indexes;
    size_t rank;    // of the tensor: *t has no dimension
    uint32_t grows; // dimensions that are as long as a program's equations make them: a bit each
    int lag;        // > 0: not `object`, but what the left side was so many iterations before
    Span span;
} EquationTerm;

typedef struct EquationNode EquationNode;
struct EquationNode {
    enum EquationNodeKind {
        EQUATION_TERM,
        EQUATION_VALUE,    // a number
        EQUATION_POSITION, // an index as the numbers 0, 1, 2...
        EQUATION_OPERATOR, // of one or two parts
        EQUATION_PRODUCT,  // of any number of parts, some of which divide
        EQUATION_CALL,
        EQUATION_CONCAT, // parts[0] with all indexes that the left side lacks as one
    } kind;
    Operator op;
    Span span;
    int number; // of the term, the value, the index, the function called, the index joined to
    EquationNode **parts;
    size_t count;
    bool *divides;         // PRODUCT
    const Argument *names; // CALL: the arguments as written
    IndexSet indexes;      // of the result
    IndexSet reduced;      // indexes of the parts that this node takes together
    Projection reduction;  // how; not written: by a sum
};

// X[t+1, i] = f(X[t, i], ...) and X[t, i] = f(X[t-1, i], ...): the right side is evaluated for one
// t after the other.
typedef struct EquationLoop {
    int index;  // -1: the equation has none
    int offset; // of the left side: 1 in t+1
    int rows;   // values that are there before the first step; this has t = rows - offset
    bool kept;  // as a dimension; *t keeps only the last value
    int start;  // of Equation.values: what the left side is before; -1: it has no value
    int dim;    // of the left side
} EquationLoop;

typedef struct Equation {
    Word *names; // of the indexes; text NULL: of a slice
    int name_count;
    int64_t *sizes;  // of the indexes, as inference finds them: 0 where it has not, or SIZE_UNKNOWN
    NodeList values; // evaluated first, in the order of the text
    EquationTerm *terms;
    size_t term_count;
    Position *left;
    size_t left_count;
    IndexSet left_indexes;
    EquationLoop loop;
    Projection projection; // of the left side, for values that fall on one place
    bool program;          // of a program block: a name may have no value yet
    bool whole;            // Y = of one: what has no index is taken as it is
    Semiring semiring;
    int dotted; // the index that functions normalise along; -1: none
    EquationNode *value;
    Span span;
} Equation;

// A line for each sum that is not written as one, sum[j](A[i, j] B[j, k]), and one of the sizes
// that are known; each after a newline.
void equation_append_sums(Text *out, const Equation *equation);

// The text of a part, for messages: short, or "..." where it is long.
const char *equation_text(Span span, char *buffer, size_t size);

#endif
