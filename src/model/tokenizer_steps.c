// The steps that prepare a text for a tokenizer's model: normalizers and pre-tokenizers of the
// Hugging Face format. Matches have limits, so that no pattern hangs.
#define _GNU_SOURCE // memmem
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "model/tokenizer_internal.h"

enum { MATCH_STEPS_MAX = 5 * 1000 * 1000 };

void words_free(Words *words) {
    text_free(&words->text);
    VECTOR_FREE(&words->ends);
}

Status words_change(Words *words, const TextStep *step, WordChange change, void *context) {
    Words out = {.at_start = words->at_start};
    Status status = STATUS_OK;
    for (size_t i = 0; i < words->ends.count && status == STATUS_OK; i++) {
        status = tokenizer_go_on(i);
        if (status == STATUS_OK) status = change(step, words_at(words, i), context, &out);
    }
    if (status == STATUS_OK) {
        Words before = *words;
        *words = out;
        out = before;
    }
    words_free(&out);
    return status;
}

static Status prepend(const TextStep *step, TextWord word, void *context, Words *out) {
    (void)context;
    if (word.length > 0) text_append_string(&out->text, step->content);
    text_append(&out->text, word.bytes, word.length);
    words_end(out);
    return STATUS_OK;
}

Status step_prepend(const TextStep *step, Words *words) {
    return words_change(words, step, prepend, NULL);
}

// --- patterns

Status step_compile(TextStep *step, const char *pattern, size_t length) {
    int error;
    PCRE2_SIZE offset;
    step->regex =
        pcre2_compile((PCRE2_SPTR)pattern, length, PCRE2_UTF | PCRE2_UCP, &error, &offset, NULL);
    if (step->regex) {
        step->pattern = memory_copy_string(pattern, length);
        return STATUS_OK;
    }
    PCRE2_UCHAR words[160];
    pcre2_get_error_message(error, words, sizeof words);
    return fail(STATUS_FORMAT, "a pattern of the tokenizer is wrong at byte %zu: %s", offset,
                (const char *)words);
}

void step_release(TextStep *step) {
    free(step->pattern);
    free(step->content);
    pcre2_code_free(step->regex);
}

typedef struct Stretch {
    size_t begin, end;
    bool match;
} Stretch;
typedef VECTOR(Stretch) Stretches;

static Status fail_match(int error) {
    PCRE2_UCHAR words[160];
    pcre2_get_error_message(error, words, sizeof words);
    return fail(STATUS_VALUE, "the tokenizer cannot cut this text: %s", (const char *)words);
}

// What matching needs, for all words of a step.
typedef struct Matcher {
    pcre2_match_data *data;
    pcre2_match_context *limits;
    size_t count; // of matches so far
} Matcher;

static Matcher matcher_new(const TextStep *step) {
    Matcher matcher = {.data = pcre2_match_data_create_from_pattern(step->regex, NULL),
                       .limits = pcre2_match_context_create(NULL)};
    pcre2_set_match_limit(matcher.limits, MATCH_STEPS_MAX);
    return matcher;
}

static void matcher_free(Matcher *matcher) {
    pcre2_match_context_free(matcher->limits);
    pcre2_match_data_free(matcher->data);
}

// The word is valid UTF-8 (make_valid): checking it at each match would take quadratic time.
static int match_at(const TextStep *step, TextWord word, size_t at, Matcher *matcher) {
    return pcre2_match(step->regex, (PCRE2_SPTR)word.bytes, word.length, at, PCRE2_NO_UTF_CHECK,
                       matcher->data, matcher->limits);
}

// The matches of a pattern and what is between them, in order; empty matches are left out.
static Status find_spans(const TextStep *step, TextWord word, Matcher *matcher, Stretches *out) {
    size_t done = 0, at = 0;
    int count = 0;
    while (at <= word.length && (count = match_at(step, word, at, matcher)) > 0) {
        TRY(tokenizer_go_on(matcher->count++));
        const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(matcher->data);
        uint32_t codepoint;
        size_t next = utf8_decode(word.bytes + bounds[1], word.length - bounds[1], &codepoint);
        at = bounds[1] > bounds[0] ? bounds[1] : bounds[1] + (next ? next : 1);
        if (bounds[1] == bounds[0]) continue;
        if (bounds[0] > done) VECTOR_PUSH(out, ((Stretch){done, bounds[0], step->flag}));
        VECTOR_PUSH(out, ((Stretch){bounds[0], bounds[1], !step->flag}));
        done = bounds[1];
    }
    if (done < word.length) VECTOR_PUSH(out, ((Stretch){done, word.length, step->flag}));
    return count < 0 && count != PCRE2_ERROR_NOMATCH ? fail_match(count) : STATUS_OK;
}

// Whether a span joins the one before it.
static bool spans_join(Splitting splitting, const Stretch *before, const Stretch *span) {
    switch (splitting) {
    case SPLIT_WITH_PREVIOUS: return span->match && !before->match;
    case SPLIT_WITH_NEXT: return before->match && !span->match;
    case SPLIT_CONTIGUOUS: return before->match == span->match;
    default: return false;
    }
}

// Appends the words that a word is cut into.
static Status cut_spans(const TextStep *step, TextWord word, const Stretches *spans, Words *out) {
    for (size_t i = 0; i < spans->count; i++) {
        TRY(tokenizer_go_on(i));
        const Stretch *span = &spans->items[i];
        if (span->match && step->option == SPLIT_REMOVED) continue;
        if (i > 0 && spans_join((Splitting)step->option, span - 1, span)) out->ends.count--;
        text_append(&out->text, word.bytes + span->begin, span->end - span->begin);
        words_end(out);
    }
    return STATUS_OK;
}

static Status split_word(const TextStep *step, TextWord word, void *matcher, Words *out) {
    SCOPED_MEMORY Stretches spans = {0};
    TRY(find_spans(step, word, matcher, &spans));
    return cut_spans(step, word, &spans, out);
}

static Status put_valid(const TextStep *step, TextWord word, void *context, Words *out) {
    (void)step, (void)context;
    for (size_t at = 0; at < word.length;) {
        uint32_t codepoint;
        size_t size = utf8_decode(word.bytes + at, word.length - at, &codepoint);
        text_append_codepoint(&out->text, size ? codepoint : 0xFFFD);
        at += size ? size : 1;
    }
    words_end(out);
    return STATUS_OK;
}

// PCRE2 and utf8proc take valid UTF-8 only.
static Status make_valid(Words *words) {
    if (utf8_valid(text_get(&words->text), words->text.length, NULL)) return STATUS_OK;
    return words_change(words, NULL, put_valid, NULL);
}

static Status change_matches(const TextStep *step, Words *words, WordChange change) {
    TRY(make_valid(words));
    Matcher matcher = matcher_new(step);
    Status status = words_change(words, step, change, &matcher);
    matcher_free(&matcher);
    return status;
}

Status step_split(const TextStep *step, Words *words) {
    return change_matches(step, words, split_word);
}

static Status replace_plain(const TextStep *step, TextWord word, void *context, Words *out) {
    (void)context;
    size_t length = strlen(step->pattern), count = 0;
    const char *at = word.bytes, *end = word.bytes + word.length, *found;
    while (length > 0 && (found = memmem(at, (size_t)(end - at), step->pattern, length)) != NULL) {
        TRY(tokenizer_go_on(count++));
        text_append(&out->text, at, (size_t)(found - at));
        text_append_string(&out->text, step->content);
        at = found + length;
    }
    text_append(&out->text, at, (size_t)(end - at));
    words_end(out);
    return STATUS_OK;
}

static Status replace_matches(const TextStep *step, TextWord word, void *matcher, Words *out) {
    SCOPED_MEMORY Stretches spans = {0};
    TextStep plain = {.regex = step->regex};
    Status status = find_spans(&plain, word, matcher, &spans);
    for (size_t i = 0; i < spans.count && status == STATUS_OK; i++) {
        const Stretch *span = &spans.items[i];
        status = tokenizer_go_on(i);
        if (span->match)
            text_append_string(&out->text, step->content);
        else
            text_append(&out->text, word.bytes + span->begin, span->end - span->begin);
    }
    words_end(out);
    return status;
}

Status step_replace(const TextStep *step, Words *words) {
    if (step->regex) return change_matches(step, words, replace_matches);
    return words_change(words, step, replace_plain, NULL);
}

// --- characters

// What a character becomes, appended.
typedef struct CharacterChange {
    void (*change)(uint32_t codepoint, Text *out);
} CharacterChange;

static Status change_each(const TextStep *step, TextWord word, void *context, Words *out) {
    (void)step;
    const CharacterChange *each = context;
    size_t count = 0;
    for (size_t at = 0; at < word.length;) {
        TRY(tokenizer_go_on(count++));
        uint32_t codepoint;
        size_t size = utf8_decode(word.bytes + at, word.length - at, &codepoint);
        each->change(size ? codepoint : 0xFFFD, &out->text);
        at += size ? size : 1;
    }
    words_end(out);
    return STATUS_OK;
}

static Status change_characters(Words *words, void (*change)(uint32_t codepoint, Text *out)) {
    return words_change(words, NULL, change_each, &(CharacterChange){change});
}

static void lower_character(uint32_t codepoint, Text *out) {
    text_append_codepoint(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)codepoint));
}

Status step_lowercase(const TextStep *step, Words *words) {
    (void)step;
    return change_characters(words, lower_character);
}

static void drop_accent(uint32_t codepoint, Text *out) {
    if (utf8proc_category((utf8proc_int32_t)codepoint) != UTF8PROC_CATEGORY_MN)
        text_append_codepoint(out, codepoint);
}

Status step_remove_accents(const TextStep *step, Words *words) {
    (void)step;
    return change_characters(words, drop_accent);
}

static void clean_character(uint32_t codepoint, Text *out) {
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)codepoint);
    bool blank = codepoint == '\t' || codepoint == '\n' || codepoint == '\r' ||
                 category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
                 category == UTF8PROC_CATEGORY_ZP;
    bool control = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                   category == UTF8PROC_CATEGORY_CN || category == UTF8PROC_CATEGORY_CO;
    if (blank)
        text_append_char(out, ' ');
    else if (!control && codepoint != 0xFFFD)
        text_append_codepoint(out, codepoint);
}

Status step_clean(const TextStep *step, Words *words) {
    (void)step;
    return change_characters(words, clean_character);
}

static void space_ideograph(uint32_t c, Text *out) {
    static const uint32_t ranges[][2] = {
        {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
        {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F},
    };
    bool ideograph = false;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        ideograph |= c >= ranges[i][0] && c <= ranges[i][1];
    if (ideograph) text_append_char(out, ' ');
    text_append_codepoint(out, c);
    if (ideograph) text_append_char(out, ' ');
}

Status step_space_ideographs(const TextStep *step, Words *words) {
    (void)step;
    return change_characters(words, space_ideograph);
}

// Where a part of a word may end for its form to be that of the whole: behind as many bytes, before
// a character that none before it changes or is changed by, one of ASCII or an ideograph (from
// U+4000 to U+9FFF, by the first byte).
static size_t part_end(TextWord word, size_t begin) {
    enum { PART_BYTES = 1 << 16 };
    size_t at = word.length - begin > PART_BYTES ? begin + PART_BYTES : word.length;
    for (; at < word.length; at++) {
        unsigned char byte = (unsigned char)word.bytes[at];
        if (byte < 0x80 || (byte >= 0xE4 && byte <= 0xE9)) break;
    }
    return at;
}

static Status put_form(const TextStep *step, TextWord word, void *context, Words *out) {
    (void)context;
    for (size_t begin = 0, end; begin < word.length; begin = end) {
        TRY(tokenizer_go_on(0));
        end = part_end(word, begin);
        utf8proc_uint8_t *form = NULL;
        utf8proc_ssize_t length =
            utf8proc_map((const utf8proc_uint8_t *)word.bytes + begin,
                         (utf8proc_ssize_t)(end - begin), &form, (utf8proc_option_t)step->option);
        if (length < 0)
            return fail(STATUS_VALUE, "the tokenizer cannot normalise this text: %s",
                        utf8proc_errmsg(length));
        text_append(&out->text, (const char *)form, (size_t)length);
        free(form);
    }
    words_end(out);
    return STATUS_OK;
}

Status step_unicode_form(const TextStep *step, Words *words) {
    TRY(make_valid(words));
    return words_change(words, step, put_form, NULL);
}

static Status strip(const TextStep *step, TextWord word, void *context, Words *out) {
    (void)context;
    size_t begin = 0, end = word.length;
    while ((step->option & 1) && begin < end && memchr(" \t\n\r", word.bytes[begin], 4)) begin++;
    while ((step->option & 2) && end > begin && memchr(" \t\n\r", word.bytes[end - 1], 4)) end--;
    text_append(&out->text, word.bytes + begin, end - begin);
    words_end(out);
    return STATUS_OK;
}

Status step_strip(const TextStep *step, Words *words) {
    return words_change(words, step, strip, NULL);
}

// --- spaces and bytes

// Every mark begins a word.
static Status cut_at_marks(const TextStep *step, TextWord word, void *context, Words *out) {
    (void)context;
    size_t mark = strlen(step->content), count = 0;
    for (size_t at = 0; at < word.length;) {
        TRY(tokenizer_go_on(count++));
        const char *next =
            mark > 0 ? memmem(word.bytes + at + 1, word.length - at - 1, step->content, mark)
                     : NULL;
        size_t end = next ? (size_t)(next - word.bytes) : word.length;
        text_append(&out->text, word.bytes + at, end - at);
        words_end(out);
        at = end;
    }
    return STATUS_OK;
}

// With `flag` every mark begins a word.
Status step_metaspace(const TextStep *step, Words *words) {
    TextStep replace = {.pattern = (char[]){" "}, .content = step->content};
    bool prefix =
        step->option == PREFIX_ALWAYS || (step->option == PREFIX_FIRST && words->at_start);
    TRY(step_replace(&replace, words));
    if (prefix) TRY(step_prepend(step, words));
    return step->flag ? words_change(words, step, cut_at_marks, NULL) : STATUS_OK;
}

Status step_prefix_space(const TextStep *step, Words *words) {
    (void)step;
    TextStep space = {.content = (char[]){" "}};
    TextWord first = words->ends.count > 0 ? words_at(words, 0) : (TextWord){0};
    bool spaced = first.length == 0 || first.bytes[0] == ' ';
    return spaced ? STATUS_OK : step_prepend(&space, words);
}

// GPT-2 writes bytes as letters: printable ones of Latin-1 as themselves, the others from U+0100
// up.
static bool is_printable(int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

static void letters_of_bytes(uint32_t letters[256]) {
    uint32_t next = 0x100;
    for (int byte = 0; byte < 256; byte++)
        letters[byte] = is_printable(byte) ? (uint32_t)byte : next++;
}

int step_byte_of_letter(uint32_t codepoint) {
    uint32_t letters[256];
    if (codepoint < 256) return is_printable((int)codepoint) ? (int)codepoint : -1;
    letters_of_bytes(letters);
    for (int byte = 0; byte < 256; byte++)
        if (letters[byte] == codepoint) return byte;
    return -1;
}

static Status put_letters(const TextStep *step, TextWord word, void *context, Words *out) {
    (void)step;
    const uint32_t *letters = context;
    for (size_t at = 0; at < word.length; at++) {
        TRY(tokenizer_go_on(at));
        text_append_codepoint(&out->text, letters[(unsigned char)word.bytes[at]]);
    }
    words_end(out);
    return STATUS_OK;
}

Status step_bytes(const TextStep *step, Words *words) {
    uint32_t letters[256];
    letters_of_bytes(letters);
    return words_change(words, step, put_letters, letters);
}
