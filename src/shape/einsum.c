// Equations of Einstein sums: from the text to labels and sizes.
#include "shape/einsum.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

char einsum_letter(int label) {
    ASSERT(label >= 0 && label < LABELS_MAX);
    if (label >= LETTERS) return '.';
    return (char)(label < 26 ? 'a' + label : 'A' + label - 26);
}
static int letter_label(char letter) {
    return letter >= 'a' ? letter - 'a' : letter - 'A' + 26;
}

static Status fail_equation(const EinsumPlan *sum, const char *problem) {
    return fail(STATUS_VALUE, "einsum: \"%s\": %s", sum->equation, problem);
}

static Status push_label(const EinsumPlan *sum, Labels *labels, int label) {
    if (labels->count == RANK_MAX) return fail_equation(sum, "more than 8 dimensions in one term");
    labels->items[labels->count++] = label;
    return STATUS_OK;
}

// Reads one term up to ',', '-' or the end. `dots` is how many dimensions its ellipsis stands for,
// -1 when the caller does not know yet (the text is then only measured).
static Status read_term(const EinsumPlan *sum, const char **text, int dots, Labels *labels,
                        bool *has_ellipsis) {
    *labels = (Labels){0};
    *has_ellipsis = false;
    for (; **text && **text != ',' && **text != '-'; (*text)++) {
        char c = **text;
        if (c == ' ') continue;
        if (isalpha((unsigned char)c)) {
            TRY(push_label(sum, labels, letter_label(c)));
        } else if (strncmp(*text, "...", 3) == 0 && !*has_ellipsis) {
            *has_ellipsis = true;
            *text += 2;
            for (int i = dots - 1; i >= 0; i--) TRY(push_label(sum, labels, LETTERS + i));
        } else {
            char problem[64];
            (void)snprintf(problem, sizeof problem, "unexpected '%c'", c);
            return fail_equation(sum, problem);
        }
    }
    return STATUS_OK;
}

// Records the size of a label; a size of 1 stretches.
static Status note_size(EinsumPlan *sum, int label, int term, int64_t size) {
    ASSERT(label >= 0 && label < LABELS_MAX && term < OPERANDS_MAX);
    int64_t *known = &sum->sizes[label];
    bool told = size_is_known(size) && size != 1;
    if (*known == -1 || (told && (*known == 1 || !size_is_known(*known)))) {
        *known = size;
        sum->seen_in[label] = term;
    }
    if (size == 1 || !sizes_differ(*known, size)) return STATUS_OK;
    TypeName here = tensor_type_text(&sum->types[term]);
    TypeName there = tensor_type_text(&sum->types[sum->seen_in[label]]);
    if (label >= LETTERS)
        return fail(STATUS_SHAPE,
                    "einsum: the dimensions under \"...\" differ: %lld in %s and %lld in %s",
                    (long long)*known, there.text, (long long)size, here.text);
    return fail(STATUS_SHAPE, "einsum: letter '%c' is %lld in %s and %lld in %s",
                einsum_letter(label), (long long)*known, there.text, (long long)size, here.text);
}

static Status read_operand(EinsumPlan *sum, const char **text, int index) {
    Labels *labels = &sum->labels[index];
    const TensorType *type = &sum->types[index];
    const char *start = *text;
    bool has_ellipsis;
    TRY(read_term(sum, text, -1, labels, &has_ellipsis));
    int rank = type->shape.rank, dots = rank - labels->count;
    if (has_ellipsis && dots >= 0) {
        *text = start;
        TRY(read_term(sum, text, dots, labels, &has_ellipsis));
        if (dots > sum->ellipsis_rank) sum->ellipsis_rank = dots;
    }
    if (labels->count != rank)
        return fail(STATUS_SHAPE, "einsum: \"%s\" names %d dimensions for operand %d, but it is %s",
                    sum->equation, labels->count, index + 1, tensor_type_text(type).text);
    for (int i = 0; i < rank; i++)
        TRY(note_size(sum, labels->items[i], index, type->shape.dims[i]));
    return STATUS_OK;
}

// Without "->": the ellipsis, then the letters that occur once, in alphabetical order.
static Status implicit_output(EinsumPlan *sum) {
    for (int i = sum->ellipsis_rank - 1; i >= 0; i--)
        TRY(push_label(sum, &sum->output, LETTERS + i));
    const char *alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (const char *letter = alphabet; *letter; letter++) {
        int label = letter_label(*letter), count = 0;
        for (int t = 0; t < sum->n_terms; t++)
            for (int i = 0; i < sum->labels[t].count; i++)
                count += sum->labels[t].items[i] == label;
        if (count == 1) TRY(push_label(sum, &sum->output, label));
    }
    return STATUS_OK;
}

static Status explicit_output(EinsumPlan *sum, const char *text) {
    bool has_ellipsis;
    TRY(read_term(sum, &text, sum->ellipsis_rank, &sum->output, &has_ellipsis));
    if (*text) return fail_equation(sum, "nothing may follow the output");
    for (int i = 0; i < sum->output.count; i++) {
        int label = sum->output.items[i];
        char problem[64];
        bool known = sum->sizes[label] != -1, twice = false;
        for (int j = 0; j < i; j++) twice = twice || sum->output.items[j] == label;
        if (known && !twice) continue;
        (void)snprintf(problem, sizeof problem, "output letter '%c' %s", einsum_letter(label),
                       twice ? "occurs twice" : "is in no operand");
        return fail_equation(sum, problem);
    }
    return STATUS_OK;
}

Status einsum_parse(EinsumPlan *sum) {
    ASSERT(sum->n_terms > 0 && sum->n_terms <= OPERANDS_MAX);
    const char *text = sum->equation;
    for (int i = 0; i < LABELS_MAX; i++) sum->sizes[i] = -1;
    for (int i = 0; i < sum->n_terms; i++) {
        TRY(read_operand(sum, &text, i));
        bool last = i + 1 == sum->n_terms;
        if (*text == ',' && !last) {
            text++;
        } else if (*text == ',' || !last) {
            return fail(STATUS_ARITY, "einsum: \"%s\" has %s terms than the %d operands given",
                        sum->equation, last ? "more" : "fewer", sum->n_terms);
        }
    }
    if (!*text) return implicit_output(sum);
    if (strncmp(text, "->", 2) != 0) return fail_equation(sum, "unexpected '-'");
    return explicit_output(sum, text + 2);
}

Shape einsum_shape(const EinsumPlan *plan) {
    Shape shape = {.rank = plan->output.count};
    ASSERT(shape.rank <= RANK_MAX);
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = plan->sizes[plan->output.items[i]];
    return shape;
}
