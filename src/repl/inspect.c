// What is behind a name: a tensor's numbers in short, a value, a function, a relation and its
// facts, a builtin's page.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check/help.h"
#include "device/buffer.h"
#include "eval/access.h"
#include "reason/reason.h"
#include "repl/internal.h"
#include "tensor/view.h"
#include "value/print.h"

enum { CHUNK = 1 << 16, BARS = 16, SHOWN_MAX = 72 };

// --- tensors

typedef struct Summary {
    double least, largest, sum;
    int64_t finite, nans, infinities;
    int64_t bars[BARS];
} Summary;

static void summary_add(Summary *summary, const double *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double x = numbers[i];
        if (isnan(x))
            summary->nans++;
        else if (isinf(x))
            summary->infinities++;
        if (!isfinite(x)) continue;
        if (summary->finite == 0 || x < summary->least) summary->least = x;
        if (summary->finite == 0 || x > summary->largest) summary->largest = x;
        summary->finite++;
        summary->sum += x;
    }
}

static void summary_count(Summary *summary, const double *numbers, int64_t count) {
    double width = (summary->largest - summary->least) / BARS;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(numbers[i])) continue;
        int bar = width > 0 ? (int)((numbers[i] - summary->least) / width) : BARS / 2;
        summary->bars[bar < BARS ? bar : BARS - 1]++;
    }
}

// Reads the numbers piece by piece: the tensor may be larger than what the host has left.
static Status summary_pass(Tensor *flat, Summary *summary,
                           void (*take)(Summary *, const double *, int64_t)) {
    int64_t count = tensor_count(flat);
    SCOPED_MEMORY double *numbers = memory_allocate(CHUNK * sizeof *numbers);
    Status status = STATUS_OK;
    for (int64_t i = 0; i < count && status == STATUS_OK; i += CHUNK) {
        int64_t stop = i + CHUNK < count ? i + CHUNK : count;
        Tensor *piece;
        status = tensor_slice(flat, 0, i, stop, &piece);
        if (status != STATUS_OK) break;
        status = tensor_read_floats(piece, numbers);
        tensor_release(piece);
        if (status == STATUS_OK) take(summary, numbers, stop - i);
    }
    return status;
}

static Status summary_make(Tensor *tensor, Summary *summary) {
    Shape line = {.rank = 1, .dims = {-1}};
    SCOPED_TENSOR(flat);
    TRY(tensor_reshape(tensor, &line, &flat));
    TRY(summary_pass(flat, summary, summary_add));
    return summary_pass(flat, summary, summary_count);
}

static void show_histogram(const Summary *summary) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int64_t most = 1;
    for (int i = 0; i < BARS; i++)
        if (summary->bars[i] > most) most = summary->bars[i];
    printf("  ");
    for (int i = 0; i < BARS; i++) {
        int height = (int)ceil(8.0 * (double)summary->bars[i] / (double)most);
        printf("%s", blocks[height]);
    }
    printf("  from %.6g to %.6g\n", summary->least, summary->largest);
}

static void append_size(const Tensor *tensor, Text *out) {
    const DTypeInfo *info = &dtype_info[tensor_dtype(tensor)];
    uint64_t blocks = (uint64_t)tensor_count(tensor) / (uint64_t)info->block_elements;
    memory_append_bytes(out, blocks * (uint64_t)info->block_bytes);
}

static void show_origin(Origin origin) {
    SourcePlace place = source_find(origin.at);
    if (place.file) printf(", made at %s:%d:%d", place.file->name, place.line, place.column);
    printf("\n");
}

static void inspect_tensor(const char *name, Tensor *tensor) {
    SCOPED_TEXT(text);
    tensor_describe(tensor, &text);
    text_format(&text, " on %s%s, ", tensor->device->name, tensor->learnable ? ", learnable" : "");
    append_size(tensor, &text);
    printf("%s: %s", name, text_get(&text));
    show_origin(tensor->origin);
    if (tensor_count(tensor) == 0) return;
    Summary summary = {0};
    if (summary_make(tensor, &summary) != STATUS_OK) {
        repl_show_error();
        return;
    }
    if (summary.finite > 0)
        printf("  min %.6g  max %.6g  mean %.6g  nan %lld  inf %lld\n", summary.least,
               summary.largest, summary.sum / (double)summary.finite, (long long)summary.nans,
               (long long)summary.infinities);
    else
        printf("  no finite number  nan %lld  inf %lld\n", (long long)summary.nans,
               (long long)summary.infinities);
    if (summary.finite > 0) show_histogram(&summary);
}

// --- names

static void append_function(const Binding *binding, Text *out) {
    const FunctionNode *function = binding->declaration->as.function;
    size_t length;
    const char *text = source_text(function->head, &length);
    text_append(out, text, length);
}

static void append_value(Value value, Text *out) {
    if (value.kind == VALUE_TENSOR) {
        tensor_describe(value.as.tensor, out);
        text_format(out, " on %s, ", value.as.tensor->device->name);
        append_size(value.as.tensor, out);
        return;
    }
    if (value.kind != VALUE_STRUCT) text_format(out, "%s ", value_kind_name(value));
    SCOPED_TEXT(shown);
    if (value_print(value, true, &shown) != STATUS_OK) error_clear();
    size_t length = strcspn(text_get(&shown), "\n");
    bool cut = length < shown.length || length > SHOWN_MAX;
    if (length > SHOWN_MAX) {
        length = SHOWN_MAX;
        while (((unsigned char)shown.bytes[length] & 0xC0) == 0x80) length--;
    }
    text_append(out, text_get(&shown), length);
    if (cut) text_append_string(out, "...");
}

static void append_name(SessionName name, Text *out) {
    switch (name.binding->kind) {
    case BINDING_FUNCTION: append_function(name.binding, out); break;
    case BINDING_STRUCT: text_format(out, "struct %s", name.name); break;
    case BINDING_RELATION: relation_describe(name.binding->relation, out); break;
    case BINDING_MODULE: text_format(out, "file %s", name.binding->program->file->name); break;
    default: append_value(*name.value, out);
    }
}

static bool name_has_value(SessionName name) {
    return !name.value || name.value->kind != VALUE_ABSENT;
}

void inspect_variables(const Repl *repl) {
    size_t count = session_name_count(repl->session), shown = 0;
    for (size_t i = 0; i < count; i++) {
        SessionName name = session_name(repl->session, i);
        bool last = strcmp(name.name, "_") == 0;
        if (!name_has_value(name) || (last && name.value->kind == VALUE_NONE)) continue;
        SCOPED_TEXT(text);
        append_name(name, &text);
        printf("%-12s %s\n", name.name, text_get(&text));
        shown++;
    }
    if (shown == 0) printf("no variables\n");
}

Value inspect_path(const Repl *repl, const char *path, size_t length) {
    size_t part = 0;
    while (part < length && path[part] != '.') part++;
    SessionName name;
    if (!session_find(repl->session, path, part, &name) || !name.value) return value_absent();
    Value value = value_retain(*name.value);
    while (part < length && value.kind != VALUE_ABSENT && value.kind != VALUE_FAIL) {
        size_t start = ++part;
        while (part < length && path[part] != '.') part++;
        Value inner = value_get_property(value, path + start, part - start);
        value_release(value);
        value = inner;
    }
    if (value.kind == VALUE_FAIL) error_clear();
    return value.kind == VALUE_FAIL ? value_absent() : value;
}

static void inspect_value(const char *name, Value value) {
    if (value.kind == VALUE_TENSOR) {
        inspect_tensor(name, value.as.tensor);
        return;
    }
    SCOPED_TEXT(text);
    append_value(value, &text);
    printf("%s: %s\n", name, text_get(&text));
}

void inspect_name(Repl *repl, const char *name, size_t length) {
    SCOPED_MEMORY char *word = memory_copy_string(name, length);
    SessionName found;
    SCOPED_TEXT(text);
    SCOPED_VALUE(value) = inspect_path(repl, name, length);
    if (value.kind != VALUE_ABSENT) {
        inspect_value(word, value);
    } else if (session_find(repl->session, name, length, &found) && !found.value) {
        append_name(found, &text);
        printf("%s\n", text_get(&text));
    } else if (help_page(word, &text) == STATUS_OK) {
        printf("%s", text_get(&text));
    } else {
        error_clear();
        fail(STATUS_NAME, "there is no variable and no builtin called \"%s\"", word);
        repl_show_error();
    }
}

void inspect_facts(Repl *repl, const char *name) {
    SessionName found;
    SCOPED_TEXT(text);
    bool known = session_find(repl->session, name, strlen(name), &found);
    if (known && found.binding->kind == BINDING_RELATION) {
        relation_list_facts(reasoner_get(repl->interp)->store, found.binding->relation, &text);
        printf("%s", text_get(&text));
    } else {
        fail(STATUS_NAME, "there is no relation called \"%s\"", name);
        fail_help(":vars shows the names of the session");
        repl_show_error();
    }
}

void inspect_rules(Repl *repl) {
    SCOPED_TEXT(text);
    store_list_rules(reasoner_get(repl->interp)->store, &text);
    printf("%s", text.length ? text_get(&text) : "no rules\n");
}
