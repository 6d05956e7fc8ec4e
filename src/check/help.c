// Pages of what std/ declares are read from its files: the head as written, and the comment above.
#define _GNU_SOURCE // memmem
#include "check/help.h"

#include "base/standard.h"
#include "check/checker.h"

static void append_source(Text *out, Span span) {
    size_t length;
    const char *text = source_text(span, &length);
    text_append(out, text, length);
    text_append_char(out, '\n');
}

static void append_function(const FunctionNode *function, Text *out) {
    Span head = function->head;
    if (function->result) head.end = function->result->span.end;
    append_source(out, head);
}

static void append_comment(SourcePos at, Text *out) {
    SCOPED_TEXT(comment);
    source_append_comment(at, &comment);
    for (const char *line = text_get(&comment); *line;) {
        size_t length = strcspn(line, "\n");
        text_format(out, "    %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static bool is_named(const Word *word, const char *name) {
    return word->text && strcmp(word->text, name) == 0;
}

static void append_declaration(const Node *node, const char *name, Text *out) {
    if (node->kind == NODE_FUNCTION && is_named(&node->as.function->name, name)) {
        append_function(node->as.function, out);
        append_comment(node->span.begin, out);
    } else if (node->kind == NODE_STRUCT && is_named(&node->as.structure.name, name)) {
        append_source(out, node->span);
        append_comment(node->span.begin, out);
    } else if (node->kind == NODE_IMPL && is_named(&node->as.impl.name, name)) {
        for (size_t i = 0; i < node->as.impl.function_count; i++) {
            const FunctionNode *function = node->as.impl.functions[i]->as.function;
            text_append_string(out, "  ");
            append_function(function, out);
        }
    }
}

static void append_file(const SourceFile *source, const char *path, const char *name, Text *out) {
    DiagnosticList ignored = {0};
    Program *program = parse_program(source, &ignored);
    NodeList list = program->top->as.block.statements;
    size_t before = out->length;
    for (size_t i = 0; i < list.count; i++) append_declaration(list.items[i], name, out);
    if (out->length > before) text_format(out, "in: import \"%s\"\n", path);
    program_free(program);
    diagnostic_list_free(&ignored);
}

// One that stands in std/ itself is for programs to import; those in its folders are for tl.
static bool is_library(const char *path) {
    return strchr(strchr(path, '/') + 1, '/') == NULL;
}

// Those on disk, or what the program has of them.
static void append_library(const char *name, Text *out) {
    SCOPED_TEXT(found);
    SCOPED_TEXT(tried);
    const SourceFile *source;
    for (size_t i = 0; i < standard_file_count; i++) {
        const char *path = standard_files[i].path;
        if (!is_library(path) || !imports_find_standard(path, &found, &tried)) continue;
        if (imports_load(text_get(&found), &source) == STATUS_OK)
            append_file(source, path, name, out);
        else
            error_clear();
    }
}

Status help_page(const char *name, Text *out) {
    size_t before = out->length;
    if (catalog_help(name, out) != STATUS_OK) error_clear();
    append_library(name, out);
    ASSERT(out->length >= before);
    // A search that could not open a file leaves no error: its words are given anew.
    return out->length > before ? STATUS_OK : catalog_help(name, out);
}

const char *help_library_file(const char *name) {
    SCOPED_TEXT(function);
    SCOPED_TEXT(structure);
    text_format(&function, "\nfn %s(", name);
    text_format(&structure, "\nstruct %s {", name);
    for (size_t i = 0; i < standard_file_count; i++) {
        const StandardFile *file = &standard_files[i];
        if (is_library(file->path) &&
            (memmem(file->text, file->length, function.bytes, function.length) ||
             memmem(file->text, file->length, structure.bytes, structure.length)))
            return file->path;
    }
    return NULL;
}
