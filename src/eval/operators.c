// Operators on values of every kind: numbers here, tensors through op_apply, strings and lists, and
// the words of what cannot be combined.
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/source.h"
#include "check/operator_words.h"
#include "eval/access.h"
#include "eval/code.h"
#include "tensor/op.h"
#include "value/convert.h"
#include "value/items.h"
#include "value/print.h"

// Looked up once in a process: the catalog never changes.
static const OpRow *operator_row(Operator op) {
    static const OpRow *_Atomic found[OPERATOR_NONE];
    ASSERT((unsigned)op < OPERATOR_NONE);
    const char *name = operator_info[op].operation;
    const OpRow *row = atomic_load_explicit(&found[op], memory_order_relaxed);
    if (LIKELY(row != NULL) || !name) return row;
    const Builtin *builtin = catalog_find(name, strlen(name));
    if (builtin && builtin->kind == ROW_OP) row = &op_rows[builtin->id];
    atomic_store_explicit(&found[op], row, memory_order_relaxed);
    return row;
}

static Value overflow(const char *text, int64_t left, int64_t right) {
    fail(STATUS_OVERFLOW, "%lld %s %lld does not fit in 64 bits", (long long)left, text,
         (long long)right);
    fail_help("ints are 64-bit; use floats for larger numbers");
    return value_fail();
}

static Value by_zero(const char *text, int64_t left) {
    fail(STATUS_DIVIDE, "%lld %s 0: division by zero", (long long)left, text);
    return value_fail();
}

// Negative exponents give a float, as in Python.
static Value int_power(int64_t base, int64_t exponent) {
    if (exponent < 0) return value_float(pow((double)base, (double)exponent));
    int64_t result = 1, square = base;
    for (int64_t left = exponent; left > 0; left >>= 1) {
        if ((left & 1) && __builtin_mul_overflow(result, square, &result))
            return overflow("**", base, exponent);
        if (left > 1 && __builtin_mul_overflow(square, square, &square))
            return overflow("**", base, exponent);
    }
    return value_int(result);
}

static Value operator_int(Operator op, int64_t left, int64_t right) {
    int64_t result;
    switch (op) {
    case OPERATOR_ADD:
        if (__builtin_add_overflow(left, right, &result)) return overflow("+", left, right);
        return value_int(result);
    case OPERATOR_SUB:
        if (__builtin_sub_overflow(left, right, &result)) return overflow("-", left, right);
        return value_int(result);
    case OPERATOR_MUL:
        if (__builtin_mul_overflow(left, right, &result)) return overflow("*", left, right);
        return value_int(result);
    case OPERATOR_DIV:
        if (right == 0) return by_zero("/", left);
        if (right == -1 && left == INT64_MIN) return overflow("/", left, right);
        return value_int(left / right);
    case OPERATOR_MOD:
        if (right == 0) return by_zero("%", left);
        return value_int(right == -1 ? 0 : left % right);
    case OPERATOR_POW: return int_power(left, right);
    case OPERATOR_EQ: return value_bool(left == right);
    case OPERATOR_NE: return value_bool(left != right);
    case OPERATOR_LT: return value_bool(left < right);
    case OPERATOR_LE: return value_bool(left <= right);
    case OPERATOR_GT: return value_bool(left > right);
    case OPERATOR_GE: return value_bool(left >= right);
    case OPERATOR_APPROX:
        return value_bool(fabs((double)left - (double)right) <= 1e-5 + 1e-5 * fabs((double)right));
    default: return value_absent();
    }
}

static Value operator_float(Operator op, double left, double right) {
    switch (op) {
    case OPERATOR_ADD: return value_float(left + right);
    case OPERATOR_SUB: return value_float(left - right);
    case OPERATOR_MUL: return value_float(left * right);
    case OPERATOR_DIV: return value_float(left / right);
    case OPERATOR_MOD: return value_float(fmod(left, right));
    case OPERATOR_POW: return value_float(pow(left, right));
    case OPERATOR_APPROX:
        return value_bool(left == right ||
                          (isfinite(right) && fabs(left - right) <= 1e-5 + 1e-5 * fabs(right)));
    default: return value_absent();
    }
}

// By exact values: an int beyond 2^53 is not rounded to be compared with a float.
static Value compare_numbers(Operator op, Value left, Value right) {
    int order;
    if (!value_order_numbers(left, right, &order)) return value_bool(op == OPERATOR_NE);
    return operator_int(op, order, 0);
}

static double plain_double(Value value) {
    return value.kind == VALUE_FLOAT ? value.as.number : (double)value.as.integer;
}

static Value measured_apply(Operator op, Value left, Value right);

static Value numbers_apply(Operator op, Value left, Value right) {
    if (left.kind == VALUE_MEASURED || right.kind == VALUE_MEASURED)
        return measured_apply(op, left, right);
    if (left.kind != VALUE_FLOAT && right.kind != VALUE_FLOAT)
        return operator_int(op, left.as.integer, right.as.integer);
    if (op >= OPERATOR_EQ && op <= OPERATOR_GE) return compare_numbers(op, left, right);
    return operator_float(op, plain_double(left), plain_double(right));
}

void operand_describe(Text *out, Value value, const Code *code) {
    size_t length = 0;
    const char *text = code ? source_text(code->span, &length) : NULL;
    if (text && length > 0 && length <= 40 && !memchr(text, '\n', length)) {
        text_append(out, text, length);
        text_append_string(out, " is ");
    }
    value_describe(value, out);
    if (value.kind != VALUE_TENSOR) return;
    SourcePlace place = source_find(value.as.tensor->origin.at);
    if (place.file) text_format(out, " (from line %d)", place.line);
}

// Advice of the layer below calls the operands x and b: here they get the names that the script
// has.
static void name_operands_in_help(const Operands *operands) {
    const Code *codes[] = {operands->left_code, operands->right_code};
    Value values[] = {operands->left, operands->right};
    for (int i = 0; i < 2; i++) {
        size_t length = 0;
        const char *text = codes[i] ? source_text(codes[i]->span, &length) : NULL;
        if (i == 1) operator_name_operand("transpose(b)", text, length);
        if (values[i].kind != VALUE_STRING) operator_name_operand("str(x)", text, length);
    }
}

// Appends what an operand is, unless the source says just that: `1 is 1`.
static void label_operand(Text *label, Value value, const Code *code) {
    size_t length = 0;
    const char *text = code ? source_text(code->span, &length) : NULL;
    ValueText shown = value_text(value);
    if (text && strlen(shown.text) == length && memcmp(text, shown.text, length) == 0) return;
    if (label->length) text_append_string(label, ", ");
    operand_describe(label, value, code);
}

static void label_operands(const Operands *operands) {
    name_operands_in_help(operands);
    if (error_current()->label[0]) return;
    SCOPED_TEXT(label);
    label_operand(&label, operands->left, operands->left_code);
    if (operands->right.kind != VALUE_ABSENT)
        label_operand(&label, operands->right, operands->right_code);
    fail_label("%s", text_get(&label));
}

static __attribute__((noinline)) bool measured_input(Value value, OpInput *out) {
    out->tensor = NULL;
    return value.kind == VALUE_MEASURED &&
           value_to_scalar(value, "an operand", &out->scalar) == STATUS_OK;
}

static inline bool operand_input(Value value, OpInput *out) {
    out->donate = false;
    switch (value.kind) {
    case VALUE_TENSOR:
        out->tensor = value.as.tensor;
        out->donate = value.as.tensor->counted.refs == 1;
        return true;
    case VALUE_INT:
        out->tensor = NULL;
        out->scalar = (Scalar){.dtype = DTYPE_INT64, .as.i = value.as.integer};
        return true;
    case VALUE_BOOL:
        out->tensor = NULL;
        out->scalar = (Scalar){.dtype = DTYPE_BOOL, .as.i = value.as.integer};
        return true;
    case VALUE_FLOAT:
        out->tensor = NULL;
        out->scalar = (Scalar){.dtype = DTYPE_FLOAT64, .as.f = value.as.number};
        return true;
    default: return measured_input(value, out);
    }
}

// Of numbers of which one is what only a run has.
static Value measured_apply(Operator op, Value left, Value right) {
    SourcePos at = value_measured_at(left, right);
    bool compares = (op >= OPERATOR_EQ && op <= OPERATOR_GE) || op == OPERATOR_APPROX;
    bool floats = value_kind_in_run(left) == VALUE_FLOAT || value_kind_in_run(right) == VALUE_FLOAT;
    if (op == OPERATOR_POW && !floats) right = value_look(right); // a float where it is negative
    floats |= op == OPERATOR_POW && right.kind == VALUE_INT && right.as.integer < 0;
    uint64_t kind = compares ? VALUE_BOOL : floats ? VALUE_FLOAT : VALUE_INT;
    return value_measured(kind, at);
}

// ABSENT when the operands are not for tensor operations.
static Value tensors_apply(Operator op, const Operands *operands) {
    OpCall call;
    call.op = operator_row(op);
    ASSERT(operands->left.kind != VALUE_FAIL && operands->right.kind != VALUE_FAIL);
    if (!call.op || !operand_input(operands->left, &call.inputs[0])) return value_absent();
    call.n_inputs = operands->right.kind == VALUE_ABSENT ? 1 : 2;
    if (call.n_inputs == 2 && !operand_input(operands->right, &call.inputs[1]))
        return value_absent();
    call.attributes = NULL;
    call.many = NULL;
    call.n_many = 0;
    CHECK_INTERRUPT(operands->span);
    origin_current.at = operands->span.begin;
    Tensor *result;
    if (LIKELY(op_apply(&call, &result) == STATUS_OK)) return value_tensor(result);
    label_operands(operands);
    return value_fail();
}

static Value lists_join(const List *left, const List *right, uint64_t kind) {
    ASSERT(kind == VALUE_LIST || kind == VALUE_TUPLE);
    Value joined = kind == VALUE_LIST ? value_list(left->count + right->count)
                                      : value_tuple(left->count + right->count);
    list_append(joined.as.list, left->items, left->count);
    list_append(joined.as.list, right->items, right->count);
    return joined;
}

static Value string_repeat(const String *string, int64_t times) {
    enum { REPEATED_MAX = 1 << 28 };
    if (times <= 0 || string->length == 0) return value_cstring("");
    if ((uint64_t)times > REPEATED_MAX / string->length) {
        fail(STATUS_VALUE, "a string of %zu bytes repeated %lld times is too long", string->length,
             (long long)times);
        return value_fail();
    }
    SCOPED_TEXT(text);
    for (int64_t i = 0; i < times; i++) text_append(&text, string->bytes, string->length);
    Value repeated = value_string(text_get(&text), text.length);
    if (string_is_measured(string)) return string_as_measured(repeated.as.string);
    return repeated;
}

static Value list_repeat(const List *list, int64_t times, uint64_t kind) {
    enum { REPEATED_MAX = 1 << 26 };
    ASSERT(kind == VALUE_LIST || kind == VALUE_TUPLE);
    if (times < 0) times = 0;
    if (list->count > 0 && (uint64_t)times > REPEATED_MAX / list->count) {
        fail(STATUS_VALUE, "a list of %zu values repeated %lld times is too long", list->count,
             (long long)times);
        return value_fail();
    }
    size_t count = list->count * (size_t)times;
    Value repeated = kind == VALUE_LIST ? value_list(count) : value_tuple(count);
    List *out = repeated.as.list;
    if (count == 0 || out->capacity < count) return repeated; // or memory ran out
    list_append(out, list->items, list->count);
    while (out->count < count) {
        size_t left = count - out->count;
        list_append(out, out->items, left < out->count ? left : out->count);
    }
    return repeated;
}

static Value sequence_repeat(Value sequence, int64_t times) {
    if (sequence.kind == VALUE_STRING) return string_repeat(sequence.as.string, times);
    return list_repeat(sequence.as.list, times, sequence.kind);
}

static bool is_list_or_text(Value value) {
    const uint64_t kinds = 1u << VALUE_STRING | 1u << VALUE_LIST | 1u << VALUE_TUPLE;
    return (kinds >> value.kind & 1u) != 0;
}

// A tensor of rank > 0 next to a list joins it with its elements: xs + [1, 2].
static Value list_join_tensor(Value left, Value right) {
    bool first = left.kind == VALUE_LIST;
    ASSERT(first ? right.kind == VALUE_TENSOR : right.kind == VALUE_LIST);
    SCOPED_VALUE(elements) = tensor_to_list(first ? right.as.tensor : left.as.tensor);
    if (elements.kind == VALUE_FAIL) return elements;
    return first ? lists_join(left.as.list, elements.as.list, VALUE_LIST)
                 : lists_join(elements.as.list, right.as.list, VALUE_LIST);
}

static bool is_array(Value value) {
    return value.kind == VALUE_TENSOR && tensor_rank(value.as.tensor) > 0;
}

// ABSENT when the operands are not sequences. Counts may be rank-0 tensors.
static Value sequences_apply(Operator op, Value left, Value right) {
    if (op == OPERATOR_ADD && ((left.kind == VALUE_LIST && is_array(right)) ||
                               (right.kind == VALUE_LIST && is_array(left))))
        return list_join_tensor(left, right);
    if (!is_list_or_text(left) && !is_list_or_text(right)) return value_absent();
    if (value_read_number(&left) != STATUS_OK || value_read_number(&right) != STATUS_OK)
        return value_fail();
    if (op == OPERATOR_ADD && left.kind == right.kind && value_is_sequence(left))
        return lists_join(left.as.list, right.as.list, left.kind);
    if (op != OPERATOR_MUL) return value_absent();
    Value sequence = is_list_or_text(left) ? left : right,
          times = is_list_or_text(left) ? right : left;
    if (!value_is_number(times)) return value_absent();
    int64_t count;
    if (value_to_int(times, "the count of a repetition", &count) != STATUS_OK) return value_fail();
    return sequence_repeat(sequence, count);
}

static Value order_apply(Operator op, Value left, Value right) {
    bool ordered = left.kind == right.kind && is_list_or_text(left);
    if (!ordered) return value_absent();
    int order;
    if (value_compare(left, right, &order) != STATUS_OK) return value_fail();
    return value_bool(op == OPERATOR_LT   ? order < 0
                      : op == OPERATOR_LE ? order <= 0
                      : op == OPERATOR_GT ? order > 0
                                          : order >= 0);
}

static Value equality_apply(Operator op, Value left, Value right) {
    ASSERT(op == OPERATOR_EQ || op == OPERATOR_NE);
    bool equal;
    if (value_equals(left, right, &equal) != STATUS_OK) return value_fail();
    return value_bool(equal == (op == OPERATOR_EQ));
}

static Value containment_apply(Operator op, Value item, Value container) {
    ASSERT(op == OPERATOR_IN || op == OPERATOR_NOT_IN);
    bool found;
    if (value_contains(container, item, &found) != STATUS_OK) return value_fail();
    return value_bool(found == (op == OPERATOR_IN));
}

static Value fail_kinds(Operator op, const Operands *operands) {
    bool unary = operands->right.kind == VALUE_ABSENT;
    (void)operator_fail_kinds(op, value_kind_name(operands->left),
                              unary ? NULL : value_kind_name(operands->right));
    label_operands(operands);
    return value_fail();
}

// A bool equals no number, although arithmetic takes it as 0 or 1.
static bool unlike(Operator op, Value left, Value right) {
    return (op == OPERATOR_EQ || op == OPERATOR_NE) &&
           (value_kind_in_run(left) == VALUE_BOOL) != (value_kind_in_run(right) == VALUE_BOOL);
}

static Value apply_any(Operator op, const Operands *operands) {
    Value left = operands->left, right = operands->right;
    if (op == OPERATOR_IN || op == OPERATOR_NOT_IN) return containment_apply(op, left, right);
    bool tensor = left.kind == VALUE_TENSOR || right.kind == VALUE_TENSOR;
    bool both = tensor && left.kind == right.kind;
    Value result = both ? tensors_apply(op, operands) : value_absent();
    if (LIKELY(result.kind != VALUE_ABSENT)) return result;
    if (op == OPERATOR_ADD || op == OPERATOR_MUL) result = sequences_apply(op, left, right);
    if (result.kind != VALUE_ABSENT) return result;
    if (tensor || op == OPERATOR_MATMUL || op == OPERATOR_OUTER)
        result = tensors_apply(op, operands);
    else if (value_is_plain_number(left) && value_is_plain_number(right) &&
             !unlike(op, left, right))
        result = numbers_apply(op, left, right);
    else if (op >= OPERATOR_LT && op <= OPERATOR_GE)
        result = order_apply(op, left, right);
    if (result.kind == VALUE_ABSENT && (op == OPERATOR_EQ || op == OPERATOR_NE))
        result = equality_apply(op, left, right);
    return result.kind == VALUE_ABSENT ? fail_kinds(op, operands) : result;
}

// A relation or an embedding as the tensor that it is; takes the value.
static Status take_tensor(Value *value) {
    Tensor *tensor;
    if (!value_is_handle_tensor(*value)) return STATUS_OK;
    TRY(value_to_tensor(*value, "an operand", &tensor));
    value_release(*value);
    *value = value_tensor(tensor);
    return STATUS_OK;
}

static Value finish(const Operands *operands, Value result) {
    if (failed(result)) error_place(operands->span);
    value_release(operands->left);
    value_release(operands->right);
    return result;
}

static __attribute__((noinline)) Value apply_handles(Operator op, const Operands *given) {
    Operands operands = *given;
    Status status = take_tensor(&operands.left);
    if (status == STATUS_OK) status = take_tensor(&operands.right);
    return finish(&operands, status == STATUS_OK ? apply_any(op, &operands) : value_fail());
}

Value operator_apply(Frame *frame, Operator op, const Operands *operands) {
    (void)frame;
    Value left = operands->left, right = operands->right;
    if (op == OPERATOR_ADD && left.kind == VALUE_STRING && right.kind == VALUE_STRING)
        return finish(operands, string_concat(left.as.string, right.as.string));
    bool handles = left.kind == VALUE_HANDLE || right.kind == VALUE_HANDLE;
    bool numbers =
        op != OPERATOR_EQ && op != OPERATOR_NE && op != OPERATOR_IN && op != OPERATOR_NOT_IN;
    if (UNLIKELY(handles) && numbers) return apply_handles(op, operands);
    return finish(operands, apply_any(op, operands));
}

typedef struct BinaryCode {
    Code head;
    Operator op;
    const Code *left, *right;
} BinaryCode;

// `x == none` and `x != none`, where x lies somewhere.
typedef struct NoneCode {
    Code head;
    const Code *general;
    Place place;
    bool wanted;
} NoneCode;

static Value eval_is_none(Frame *frame, const Code *code) {
    const NoneCode *none = (const NoneCode *)code;
    const Value *value = place_find(frame, &none->place);
    if (value->kind == VALUE_ABSENT || value->kind == VALUE_TENSOR || value->kind == VALUE_HANDLE)
        return EVAL(frame, none->general);
    return value_bool((value->kind == VALUE_NONE) == none->wanted);
}

const Code *lower_binary(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_BINARY);
    const Code *left = lower(lowering, node->as.binary.left);
    const Code *right = lower(lowering, node->as.binary.right);
    const Code *general = lower_scalar_binary(lowering, node->op, left, right, node->span);
    bool equality = node->op == OPERATOR_EQ || node->op == OPERATOR_NE;
    Place place = place_of(left);
    if (!equality || node->as.binary.right->kind != NODE_NONE || !place.exists) return general;
    NoneCode *none = LOWER_NEW(lowering, NoneCode, eval_is_none, node->span);
    none->general = general;
    none->place = place;
    none->wanted = node->op == OPERATOR_EQ;
    return &none->head;
}

static bool is_bool(Value value) {
    return value_kind_in_run(value) == VALUE_BOOL;
}

static Value eval_unary(Frame *frame, const Code *code) {
    const BinaryCode *unary = (const BinaryCode *)code;
    Value value = EVAL(frame, unary->left);
    if (failed(value)) return value;
    if (unary->op == OPERATOR_NOT && value.kind == VALUE_BOOL) return value_bool(!value.as.integer);
    if (unary->op == OPERATOR_NEG && value.kind == VALUE_FLOAT)
        return value_float(-value.as.number);
    if (value.kind == VALUE_MEASURED && (unary->op == OPERATOR_NOT) == is_bool(value)) return value;
    if (unary->op == OPERATOR_NEG && value.kind == VALUE_INT) {
        Value negated = operator_int(OPERATOR_SUB, 0, value.as.integer);
        return failed(negated) ? fail_at(code->span) : negated;
    }
    Operands operands = {
        .left = value, .right = value_absent(), .left_code = unary->left, .span = code->span};
    Value result =
        value.kind == VALUE_TENSOR ? tensors_apply(unary->op, &operands) : value_absent();
    if (result.kind == VALUE_ABSENT) result = fail_kinds(unary->op, &operands);
    if (failed(result)) error_place(code->span);
    value_release(value);
    return result;
}

const Code *lower_unary(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_UNARY);
    const Code *operand = lower(lowering, node->as.binary.left);
    Value constant;
    if (node->op == OPERATOR_NEG && code_constant(operand, &constant)) {
        if (constant.kind == VALUE_FLOAT)
            return lower_constant(lowering, value_float(-constant.as.number), node->span);
        if (constant.kind == VALUE_INT && constant.as.integer != INT64_MIN)
            return lower_constant(lowering, value_int(-constant.as.integer), node->span);
    }
    BinaryCode *code = LOWER_NEW(lowering, BinaryCode, eval_unary, node->span);
    code->op = node->op;
    code->left = operand;
    return &code->head;
}

static int condition_fail(Value value, Span span) {
    size_t length;
    const char *text = source_text(span, &length);
    bool array = is_array(value);
    const char *kind = array                    ? "tensor[]"
                       : value_is_number(value) ? "float"
                                                : value_kind_name(value);
    fail(STATUS_TYPE, "a condition is a bool, but this is %s", value_text(value).text);
    operator_condition_help(kind, array && tensor_dtype(value.as.tensor) == DTYPE_BOOL, text,
                            length);
    error_place(span);
    return -1;
}

int condition_read(Value value, const Code *code) {
    if (failed(value)) return -1;
    int boolean;
    bool read;
    bool one = value.kind == VALUE_TENSOR && tensor_rank(value.as.tensor) == 0 &&
               tensor_dtype(value.as.tensor) == DTYPE_BOOL;
    bool measured = value.kind == VALUE_MEASURED && is_bool(value);
    if (measured) value.as.measured.at = code->span.begin;
    if (one || measured) {
        origin_current.at = code->span.begin;
        boolean = value_to_bool(value, "the condition", &read) == STATUS_OK ? read : -1;
        if (boolean < 0) error_place(code->span);
    } else {
        boolean = condition_fail(value, code->span);
    }
    value_release(value);
    return boolean;
}

static Value eval_and(Frame *frame, const Code *code) {
    const BinaryCode *binary = (const BinaryCode *)code;
    int left = condition_eval(frame, binary->left);
    if (left <= 0) return left < 0 ? value_fail() : value_bool(false);
    int right = condition_eval(frame, binary->right);
    return right < 0 ? value_fail() : value_bool(right);
}

static Value eval_or(Frame *frame, const Code *code) {
    const BinaryCode *binary = (const BinaryCode *)code;
    int left = condition_eval(frame, binary->left);
    if (left != 0) return left < 0 ? value_fail() : value_bool(true);
    int right = condition_eval(frame, binary->right);
    return right < 0 ? value_fail() : value_bool(right);
}

const Code *lower_logical(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_LOGICAL);
    Eval eval = node->op == OPERATOR_AND ? eval_and : eval_or;
    BinaryCode *code = LOWER_NEW(lowering, BinaryCode, eval, node->span);
    code->op = node->op;
    code->left = lower(lowering, node->as.binary.left);
    code->right = lower(lowering, node->as.binary.right);
    return &code->head;
}
