// :save: the statements that ran, as a script. What was declared again is written once, and a main
// that ran where it was entered becomes a block there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_replace.h"
#include "base/utf8.h"
#include "parser/ast.h"
#include "repl/internal.h"

static const Word *declared_word(const Node *node) {
    if (node->kind == NODE_FUNCTION) return &node->as.function->name;
    if (node->kind == NODE_STRUCT) return &node->as.structure.name;
    return NULL;
}

void spoken_add(Repl *repl, const Program *program, bool gives_last) {
    const NodeList *statements = &program->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        const Node *node = statements->items[i];
        if (node->kind == NODE_TEST || node->kind == NODE_BENCH) continue;
        Span span = node->kind == NODE_MAIN ? node->as.section.function->body->span : node->span;
        size_t length;
        const char *text = source_text(span, &length);
        const Word *word = declared_word(node);
        Spoken spoken = {.text = memory_copy_string(text, length),
                         .declares = word ? memory_copy_string(word->text, word->length) : NULL,
                         .gives_last = gives_last && i + 1 == statements->count};
        VECTOR_PUSH(&repl->spoken, spoken);
    }
}

void spoken_clear(Repl *repl) {
    for (size_t i = 0; i < repl->spoken.count; i++) {
        free(repl->spoken.items[i].text);
        free(repl->spoken.items[i].declares);
    }
    VECTOR_FREE(&repl->spoken);
}

static bool part_of_name(const char *text, size_t length) {
    uint32_t codepoint;
    size_t bytes = utf8_decode(text, length, &codepoint);
    return bytes && (utf8_is_letter(codepoint) || (codepoint >= '0' && codepoint <= '9'));
}

// Whether the text has the name `_` in it (in a string too, which costs one assignment).
static bool mentions_last(const char *text) {
    for (const char *at = strchr(text, '_'); at; at = strchr(at + 1, '_')) {
        bool before = at > text && ((unsigned char)at[-1] >= 0x80 || part_of_name(at - 1, 1));
        if (!before && !part_of_name(at + 1, strlen(at + 1))) return true;
    }
    return false;
}

static bool declared_again(const Repl *repl, size_t index) {
    const char *name = repl->spoken.items[index].declares;
    for (size_t i = index + 1; name && i < repl->spoken.count; i++) {
        const char *later = repl->spoken.items[i].declares;
        if (later && strcmp(later, name) == 0) return true;
    }
    return false;
}

static void append_all(const Repl *repl, Text *out) {
    bool last_used = false;
    for (size_t i = 0; i < repl->spoken.count; i++)
        last_used |= mentions_last(repl->spoken.items[i].text);
    for (size_t i = 0; i < repl->spoken.count; i++) {
        const Spoken *spoken = &repl->spoken.items[i];
        if (declared_again(repl, i)) continue;
        if (last_used && spoken->gives_last) text_append_string(out, "_ = ");
        text_append_string(out, spoken->text);
        text_append_char(out, '\n');
    }
}

static Status write_all(FILE *file, void *context) {
    SCOPED_TEXT(text);
    append_all(context, &text);
    return stream_write(file, text_get(&text), text.length);
}

Status spoken_save(Repl *repl, const char *path) {
    return file_replace_stream(path, write_all, repl);
}
