// Where names are declared and used: definition, references, highlights, rename, symbols.
#include <stdlib.h>

#include "lexer/lexer.h"
#include "lsp/features.h"
#include "lsp/place.h"

static bool declared_somewhere(const Occurrence *occurrence) {
    return occurrence && occurrence->binding && occurrence->binding->word.span.begin &&
           occurrence->binding->kind != BINDING_BUILTIN &&
           occurrence->binding->kind != BINDING_DTYPE &&
           occurrence->binding->kind != BINDING_CONSTANT;
}

static bool is_same_name(const Occurrence *one, const Occurrence *other) {
    if (one->binding || other->binding) return one->binding == other->binding;
    return one->member && other->member && source_same_text(one->span, other->span);
}

json_t *feature_definition(const Analysis *analysis, size_t offset) {
    const Occurrence *occurrence = analysis_at(analysis, offset);
    if (!occurrence) return NULL;
    json_t *places = json_array();
    for (size_t i = 0; occurrence->member && i < analysis->members.count; i++) {
        Span span = analysis->members.items[i].name->span;
        if (source_same_text(span, occurrence->span))
            json_array_append_new(places, place_location(span));
    }
    if (json_array_size(places) == 0 && declared_somewhere(occurrence))
        json_array_append_new(places, place_location(occurrence->binding->word.span));
    return places;
}

static bool is_declaration(const Occurrence *occurrence) {
    return occurrence->binding && occurrence->binding->word.span.begin == occurrence->span.begin;
}

json_t *feature_references(const Analysis *analysis, size_t offset, bool with_declaration) {
    const Occurrence *asked = analysis_at(analysis, offset);
    if (!asked) return NULL;
    json_t *places = json_array();
    for (size_t i = 0; i < analysis->occurrences.count; i++) {
        const Occurrence *each = &analysis->occurrences.items[i];
        if (is_same_name(asked, each) && (with_declaration || !is_declaration(each)))
            json_array_append_new(places, place_location(each->span));
    }
    return places;
}

json_t *feature_highlights(const Analysis *analysis, size_t offset) {
    const Occurrence *asked = analysis_at(analysis, offset);
    if (!asked) return NULL;
    json_t *places = json_array();
    for (size_t i = 0; i < analysis->occurrences.count; i++) {
        const Occurrence *each = &analysis->occurrences.items[i];
        if (is_same_name(asked, each) && analysis_has(analysis, each->span.begin))
            json_array_append_new(places, json_pack("{s:o}", "range", place_range(each->span)));
    }
    return places;
}

// --- rename

static const Occurrence *renamed_at(const Analysis *analysis, size_t offset) {
    const Occurrence *occurrence = analysis_at(analysis, offset);
    if (!occurrence) {
        fail(STATUS_NAME, "no name stands here");
    } else if (occurrence->member) {
        fail(STATUS_NAME, "fields and methods cannot be renamed: what they belong to is known only "
                          "when the program runs");
    } else if (!declared_somewhere(occurrence)) {
        fail(STATUS_NAME, "this name is not declared in a program");
    } else if (!analysis_has(analysis, occurrence->binding->word.span.begin)) {
        fail(STATUS_NAME, "this name is declared in another file; rename it there");
    } else if (!source_same_text(occurrence->span, occurrence->binding->word.span)) {
        fail(STATUS_NAME, "this name cannot be renamed");
    } else {
        return occurrence;
    }
    return NULL;
}

json_t *feature_prepare_rename(const Analysis *analysis, size_t offset) {
    const Occurrence *occurrence = renamed_at(analysis, offset);
    return occurrence ? place_range(occurrence->span) : NULL;
}

static bool is_name(const char *text) {
    Arena arena = {0};
    DiagnosticList ignored = {0};
    ASSERT(text != NULL);
    SourceFile file = {
        .name = "", .text = (char *)text, .length = (uint32_t)strlen(text), .base = 1};
    TokenList tokens = lexer_read(&file, &arena, &ignored, 0);
    bool name = tokens.count == 2 && tokens.items[0].kind == TOKEN_NAME &&
                tokens.items[0].span.end - tokens.items[0].span.begin == file.length;
    VECTOR_FREE(&tokens);
    arena_free(&arena);
    return name;
}

// The text with every occurrence of a binding in this file spelt anew.
static void rewrite(const Analysis *analysis, const Binding *binding, const char *name, Text *out) {
    const char *text = analysis->file->text;
    ASSERT(binding != NULL);
    SourcePos at = analysis->file->base;
    for (size_t i = 0; i < analysis->occurrences.count; i++) {
        const Occurrence *each = &analysis->occurrences.items[i];
        if (each->binding != binding || !analysis_has(analysis, each->span.begin)) continue;
        text_append(out, text + (at - analysis->file->base), each->span.begin - at);
        text_append_string(out, name);
        at = each->span.end;
    }
    size_t done = at - analysis->file->base;
    text_append(out, text + done, analysis->file->length - done);
}

// Which of the file's occurrences declares what an occurrence means; its count for none of them.
static size_t declaration_index(const Analysis *analysis, const Occurrence *occurrence) {
    size_t count = analysis->occurrences.count;
    if (!declared_somewhere(occurrence)) return count;
    size_t low = 0, high = count;
    SourcePos at = occurrence->binding->word.span.begin;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (analysis->occurrences.items[middle].span.begin < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// After a rename every name must mean the declaration that it meant before.
static bool means_the_same(const Analysis *before, const Analysis *after) {
    if (before->occurrences.count != after->occurrences.count) return false;
    if (after->diagnostics.error_count > before->diagnostics.error_count) return false;
    for (size_t i = 0; i < before->occurrences.count; i++)
        if (declaration_index(before, &before->occurrences.items[i]) !=
            declaration_index(after, &after->occurrences.items[i]))
            return false;
    return true;
}

static json_t *edits_of(const Analysis *analysis, const Binding *binding, const char *name) {
    json_t *edits = json_array();
    for (size_t i = 0; i < analysis->occurrences.count; i++) {
        const Occurrence *each = &analysis->occurrences.items[i];
        if (each->binding != binding || !analysis_has(analysis, each->span.begin)) continue;
        json_array_append_new(
            edits, json_pack("{s:o, s:s}", "range", place_range(each->span), "newText", name));
    }
    return edits;
}

json_t *feature_rename(const Analysis *analysis, size_t offset, const char *name, const char *uri) {
    const Occurrence *occurrence = renamed_at(analysis, offset);
    if (!occurrence) return NULL;
    if (!is_name(name)) {
        fail(STATUS_NAME, "`%s` is not a name", name);
        return NULL;
    }
    SCOPED_TEXT(text);
    rewrite(analysis, occurrence->binding, name, &text);
    Analysis *after = analysis_new_beside(analysis->file->name, text_get(&text), text.length);
    bool same = after && means_the_same(analysis, after);
    analysis_free(after);
    if (!same) {
        fail(STATUS_NAME, "`%s` would mean something else here", name);
        return NULL;
    }
    json_t *changes = json_object();
    json_object_set_new(changes, uri, edits_of(analysis, occurrence->binding, name));
    return json_pack("{s:o}", "changes", changes);
}

// --- symbols

enum { // of the protocol
    SYMBOL_MODULE = 2,
    SYMBOL_METHOD = 6,
    SYMBOL_FIELD = 8,
    SYMBOL_FUNCTION = 12,
    SYMBOL_VARIABLE = 13,
    SYMBOL_OBJECT = 19,
    SYMBOL_STRUCT = 23,
    SYMBOL_EVENT = 24,
};

static json_t *symbol_new(const Word *name, int kind, Span span, json_t *children) {
    const char *text = name->length > 0 ? name->text : "\"\"";
    json_t *symbol =
        json_pack("{s:o, s:i, s:o, s:o}", "name", place_text(text, strlen(text)), "kind", kind,
                  "range", place_range(span), "selectionRange", place_range(name->span));
    if (children) json_object_set_new(symbol, "children", children);
    return symbol;
}

static json_t *struct_symbol(const Node *node) {
    ASSERT(node->kind == NODE_STRUCT);
    json_t *fields = json_array();
    for (size_t i = 0; i < node->as.structure.field_count; i++) {
        const Word *field = &node->as.structure.fields[i];
        Span span = {field->span.begin, node->as.structure.types[i]->span.end};
        json_array_append_new(fields, symbol_new(field, SYMBOL_FIELD, span, NULL));
    }
    return symbol_new(&node->as.structure.name, SYMBOL_STRUCT, node->span, fields);
}

static json_t *impl_symbol(const Node *node) {
    ASSERT(node->kind == NODE_IMPL);
    json_t *methods = json_array();
    for (size_t i = 0; i < node->as.impl.function_count; i++) {
        const Node *method = node->as.impl.functions[i];
        json_array_append_new(
            methods, symbol_new(&method->as.function->name, SYMBOL_METHOD, method->span, NULL));
    }
    return symbol_new(&node->as.impl.name, SYMBOL_OBJECT, node->span, methods);
}

static void add_pattern_symbols(json_t *symbols, const Pattern *pattern, Span span) {
    if (pattern->kind == PATTERN_BIND)
        json_array_append_new(symbols, symbol_new(&pattern->name, SYMBOL_VARIABLE, span, NULL));
    for (size_t i = 0; i < pattern->part_count; i++)
        add_pattern_symbols(symbols, pattern->parts[i], span);
}

json_t *feature_symbols(const Analysis *analysis) {
    json_t *symbols = json_array();
    ASSERT(analysis->program->top->kind == NODE_BLOCK);
    NodeList statements = analysis->program->top->as.block.statements;
    for (size_t i = 0; i < statements.count; i++) {
        const Node *node = statements.items[i];
        json_t *symbol = NULL;
        switch (node->kind) {
        case NODE_FUNCTION:
            symbol = symbol_new(&node->as.function->name, SYMBOL_FUNCTION, node->span, NULL);
            break;
        case NODE_STRUCT: symbol = struct_symbol(node); break;
        case NODE_IMPL: symbol = impl_symbol(node); break;
        case NODE_IMPORT:
            symbol = symbol_new(&node->as.import.path, SYMBOL_MODULE, node->span, NULL);
            break;
        case NODE_TEST:
        case NODE_BENCH:
        case NODE_MAIN:
            symbol = symbol_new(&node->as.section.name, SYMBOL_EVENT, node->span, NULL);
            break;
        case NODE_TENSOR_DECLARATION:
            symbol = symbol_new(&node->as.tensor.name, SYMBOL_VARIABLE, node->span, NULL);
            break;
        case NODE_PROGRAM:
            symbol = symbol_new(&node->as.program->name, SYMBOL_MODULE, node->span, NULL);
            break;
        case NODE_LET: add_pattern_symbols(symbols, node->as.let.pattern, node->span); break;
        default: break;
        }
        if (symbol) json_array_append_new(symbols, symbol);
    }
    return symbols;
}
