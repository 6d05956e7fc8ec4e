// The normalizer of SentencePiece: a double-array trie of character sequences, and the texts that
// replace them. Every step in the trie is checked against its size: the file may say anything.
// Source: darts-clone (the units of the array), SentencePiece's normalizer.cc (the format).
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "model/tokenizer_internal.h"

typedef struct CharacterMap {
    const char *units; // of 4 bytes each, little-endian
    size_t unit_count;
    const char *texts; // each ends with a NUL
    size_t text_bytes;
} CharacterMap;

static uint32_t read_unit(const char *bytes) {
    uint32_t unit;
    memcpy(&unit, bytes, sizeof unit);
    return unit;
}

static uint32_t unit_offset(uint32_t unit) {
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

static CharacterMap open_map(const char *bytes, size_t length) {
    CharacterMap map = {0};
    if (length < sizeof(uint32_t)) return map;
    size_t trie = read_unit(bytes);
    if (trie > length - sizeof(uint32_t)) return map;
    map.units = bytes + sizeof(uint32_t);
    map.unit_count = trie / sizeof(uint32_t);
    map.texts = map.units + trie;
    map.text_bytes = length - sizeof(uint32_t) - trie;
    return map;
}

// How many bytes the longest sequence has that begins a text and is in the trie; 0 when none is.
static size_t longest_sequence(const CharacterMap *map, const char *text, size_t length,
                               size_t *replacement) {
    size_t found = 0, at = map->unit_count > 0 ? unit_offset(read_unit(map->units)) : 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        at ^= byte;
        if (byte == 0 || at >= map->unit_count) break;
        uint32_t unit = read_unit(map->units + at * sizeof unit);
        if ((unit & (0x80000000u | 0xFFu)) != byte) break;
        at ^= unit_offset(unit);
        if (!((unit >> 8) & 1u)) continue;
        if (at >= map->unit_count) break;
        found = i + 1;
        *replacement = read_unit(map->units + at * sizeof unit) & 0x7FFFFFFFu;
    }
    return found;
}

static void replace(const CharacterMap *map, size_t begin, Text *out) {
    if (begin >= map->text_bytes) return;
    const char *text = map->texts + begin;
    const char *end = memchr(text, '\0', map->text_bytes - begin);
    text_append(out, text, end ? (size_t)(end - text) : map->text_bytes - begin);
}

static Status normalise(const TextStep *step, TextWord word, void *context, Words *out) {
    (void)step;
    const CharacterMap *map = context;
    size_t count = 0;
    for (size_t at = 0; at < word.length;) {
        TRY(tokenizer_go_on(count++));
        size_t replacement = 0, left = word.length - at;
        size_t size = longest_sequence(map, word.bytes + at, left, &replacement);
        uint32_t codepoint;
        if (size > 0) {
            replace(map, replacement, &out->text);
        } else {
            size = utf8_decode(word.bytes + at, left, &codepoint);
            text_append_codepoint(&out->text, size > 0 ? codepoint : 0xFFFD);
        }
        at += size > 0 ? size : 1;
    }
    words_end(out);
    return STATUS_OK;
}

Status step_precompiled(const TextStep *step, Words *words) {
    CharacterMap map = open_map(step->content, step->content_length);
    return words_change(words, step, normalise, &map);
}

Status step_take_map(TextStep *step, const char *bytes, size_t length) {
    CharacterMap map = open_map(bytes, length);
    if (map.unit_count == 0)
        return fail(STATUS_FORMAT,
                    "the tokenizer's precompiled map of characters is broken: it "
                    "has %zu bytes",
                    length);
    *step = (TextStep){.apply = step_precompiled,
                       .content = memory_copy_string(bytes, length),
                       .content_length = length};
    return STATUS_OK;
}
