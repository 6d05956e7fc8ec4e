// The steps that prepare a text for a tokenizer's model: normalizers and pre-tokenizers of the
// Hugging Face format. Matches have limits, so that no pattern hangs.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "model/tokenizer_internal.h"

enum { MATCH_STEPS_MAX = 5 * 1000 * 1000 };

static void text_become(Text *text, Text *other) {
    text_free(text);
    *text = *other;
}

Status step_prepend(const TextStep *step, Words *words) {
    for (size_t i = 0; i < words->texts.count; i++) {
        Text *word = &words->texts.items[i], longer = {0};
        if (word->length == 0) continue;
        text_append_string(&longer, step->content);
        text_append(&longer, word->bytes, word->length);
        text_become(word, &longer);
    }
    return STATUS_OK;
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

// The text is valid UTF-8 (make_valid): checking it at each match would take quadratic time.
static int match_at(const TextStep *step, const Text *text, size_t at, Matcher *matcher) {
    return pcre2_match(step->regex, (PCRE2_SPTR)text_get(text), text->length, at,
                       PCRE2_NO_UTF_CHECK, matcher->data, matcher->limits);
}

// The matches of a pattern and what is between them, in order; empty matches are left out.
static Status find_spans(const TextStep *step, const Text *text, Matcher *matcher, Stretches *out) {
    size_t done = 0, at = 0;
    int count = 0;
    while (at <= text->length && (count = match_at(step, text, at, matcher)) > 0) {
        TRY(tokenizer_go_on(matcher->count++));
        const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(matcher->data);
        uint32_t codepoint;
        size_t next = utf8_decode(text->bytes + bounds[1], text->length - bounds[1], &codepoint);
        at = bounds[1] > bounds[0] ? bounds[1] : bounds[1] + (next ? next : 1);
        if (bounds[1] == bounds[0]) continue;
        if (bounds[0] > done) VECTOR_PUSH(out, ((Stretch){done, bounds[0], step->flag}));
        VECTOR_PUSH(out, ((Stretch){bounds[0], bounds[1], !step->flag}));
        done = bounds[1];
    }
    if (done < text->length) VECTOR_PUSH(out, ((Stretch){done, text->length, step->flag}));
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

static Status split_word(const TextStep *step, const Text *word, Matcher *matcher, Words *out) {
    Stretches spans = {0};
    Status status = find_spans(step, word, matcher, &spans);
    bool joined = false; // the last word may still grow
    for (size_t i = 0; i < spans.count && status == STATUS_OK; i++) {
        const Stretch *span = &spans.items[i];
        if (span->match && step->option == SPLIT_REMOVED) continue;
        joined = i > 0 && !joined && spans_join((Splitting)step->option, span - 1, span);
        if (step->option == SPLIT_CONTIGUOUS)
            joined = i > 0 && spans_join(SPLIT_CONTIGUOUS, span - 1, span);
        Text piece = {0};
        if (!joined) VECTOR_PUSH(&out->texts, piece);
        text_append(&out->texts.items[out->texts.count - 1], word->bytes + span->begin,
                    span->end - span->begin);
    }
    VECTOR_FREE(&spans);
    return status;
}

// PCRE2 takes valid UTF-8 only.
static void make_valid(Text *text) {
    if (utf8_valid(text_get(text), text->length, NULL)) return;
    Text valid = {0};
    for (size_t at = 0; at < text->length;) {
        uint32_t codepoint;
        size_t size = utf8_decode(text->bytes + at, text->length - at, &codepoint);
        text_append_codepoint(&valid, size ? codepoint : 0xFFFD);
        at += size ? size : 1;
    }
    text_become(text, &valid);
}

Status step_split(const TextStep *step, Words *words) {
    Words out = {.at_start = words->at_start};
    Status status = STATUS_OK;
    Matcher matcher = matcher_new(step);
    for (size_t i = 0; i < words->texts.count; i++) {
        make_valid(&words->texts.items[i]);
        if (status == STATUS_OK) status = split_word(step, &words->texts.items[i], &matcher, &out);
        text_free(&words->texts.items[i]);
    }
    matcher_free(&matcher);
    VECTOR_FREE(&words->texts);
    words->texts.items = out.texts.items;
    words->texts.count = out.texts.count;
    words->texts.capacity = out.texts.capacity;
    return status;
}

static void replace_plain(const TextStep *step, Text *text) {
    size_t length = strlen(step->pattern);
    Text out = {0};
    for (size_t at = 0; at < text->length;) {
        bool here = length > 0 && text->length - at >= length &&
                    memcmp(text->bytes + at, step->pattern, length) == 0;
        if (here)
            text_append_string(&out, step->content);
        else
            text_append_char(&out, text->bytes[at]);
        at += here ? length : 1;
    }
    text_become(text, &out);
}

static Status replace_matches(const TextStep *step, Matcher *matcher, Text *text) {
    make_valid(text);
    Stretches spans = {0};
    Text out = {0};
    TextStep plain = {.regex = step->regex};
    Status status = find_spans(&plain, text, matcher, &spans);
    for (size_t i = 0; i < spans.count; i++) {
        const Stretch *span = &spans.items[i];
        if (span->match)
            text_append_string(&out, step->content);
        else
            text_append(&out, text->bytes + span->begin, span->end - span->begin);
    }
    VECTOR_FREE(&spans);
    text_become(text, &out);
    return status;
}

Status step_replace(const TextStep *step, Words *words) {
    if (!step->regex) {
        for (size_t i = 0; i < words->texts.count; i++) replace_plain(step, &words->texts.items[i]);
        return STATUS_OK;
    }
    Status status = STATUS_OK;
    Matcher matcher = matcher_new(step);
    for (size_t i = 0; i < words->texts.count && status == STATUS_OK; i++)
        status = replace_matches(step, &matcher, &words->texts.items[i]);
    matcher_free(&matcher);
    return status;
}

// --- characters

// Replaces each character by what `change` appends for it.
static Status change_characters(Words *words, void (*change)(uint32_t codepoint, Text *out)) {
    size_t count = 0;
    for (size_t i = 0; i < words->texts.count; i++) {
        Text *word = &words->texts.items[i], out = {0};
        for (size_t at = 0; at < word->length;) {
            if (tokenizer_go_on(count++) != STATUS_OK) {
                text_free(&out);
                return error_current()->code;
            }
            uint32_t codepoint;
            size_t size = utf8_decode(word->bytes + at, word->length - at, &codepoint);
            change(size ? codepoint : 0xFFFD, &out);
            at += size ? size : 1;
        }
        text_become(word, &out);
    }
    return STATUS_OK;
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

Status step_unicode_form(const TextStep *step, Words *words) {
    for (size_t i = 0; i < words->texts.count; i++) {
        Text *word = &words->texts.items[i], out = {0};
        make_valid(word);
        utf8proc_uint8_t *form = NULL;
        utf8proc_ssize_t length =
            utf8proc_map((const utf8proc_uint8_t *)text_get(word), (utf8proc_ssize_t)word->length,
                         &form, (utf8proc_option_t)step->option);
        if (length < 0)
            return fail(STATUS_VALUE, "the tokenizer cannot normalise this text: %s",
                        utf8proc_errmsg(length));
        text_append(&out, (const char *)form, (size_t)length);
        free(form);
        text_become(word, &out);
    }
    return STATUS_OK;
}

Status step_strip(const TextStep *step, Words *words) {
    for (size_t i = 0; i < words->texts.count; i++) {
        Text *word = &words->texts.items[i], out = {0};
        size_t begin = 0, end = word->length;
        while ((step->option & 1) && begin < end && memchr(" \t\n\r", word->bytes[begin], 4))
            begin++;
        while ((step->option & 2) && end > begin && memchr(" \t\n\r", word->bytes[end - 1], 4))
            end--;
        text_append(&out, word->bytes + begin, end - begin);
        text_become(word, &out);
    }
    return STATUS_OK;
}

// --- spaces and bytes

// With `flag` every mark begins a word.
static void cut_at_marks(const TextStep *step, const Text *text, Words *out) {
    size_t mark = strlen(step->content);
    for (size_t at = 0; at < text->length;) {
        size_t end = at + 1;
        while (end < text->length &&
               (text->length - end < mark || memcmp(text->bytes + end, step->content, mark) != 0))
            end++;
        Text word = {0};
        text_append(&word, text->bytes + at, end - at);
        VECTOR_PUSH(&out->texts, word);
        at = end;
    }
}

Status step_metaspace(const TextStep *step, Words *words) {
    TextStep replace = {.pattern = (char[]){" "}, .content = step->content};
    Words out = {.at_start = words->at_start};
    bool prefix = step->option == PREFIX_ALWAYS || (step->option == PREFIX_FIRST && out.at_start);
    TRY(step_replace(&replace, words));
    if (prefix) TRY(step_prepend(step, words));
    if (!step->flag) return STATUS_OK;
    for (size_t i = 0; i < words->texts.count; i++) {
        cut_at_marks(step, &words->texts.items[i], &out);
        text_free(&words->texts.items[i]);
    }
    VECTOR_FREE(&words->texts);
    words->texts.items = out.texts.items;
    words->texts.count = out.texts.count;
    words->texts.capacity = out.texts.capacity;
    return STATUS_OK;
}

Status step_prefix_space(const TextStep *step, Words *words) {
    (void)step;
    TextStep prepend = {.content = (char[]){" "}};
    bool spaced = words->texts.count == 0 || words->texts.items[0].length == 0 ||
                  words->texts.items[0].bytes[0] == ' ';
    return spaced ? STATUS_OK : step_prepend(&prepend, words);
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

Status step_bytes(const TextStep *step, Words *words) {
    (void)step;
    uint32_t letters[256];
    letters_of_bytes(letters);
    for (size_t i = 0; i < words->texts.count; i++) {
        Text *word = &words->texts.items[i], out = {0};
        for (size_t at = 0; at < word->length; at++)
            text_append_codepoint(&out, letters[(unsigned char)word->bytes[at]]);
        text_become(word, &out);
    }
    return STATUS_OK;
}
