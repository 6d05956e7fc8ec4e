// Regular expressions through PCRE2, with limits on the work a match may do: nothing hangs.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/runtime.h"
#include "base/utf8.h"
#include "library/state.h"
#include "value/convert.h"
#include "value/print.h"

enum { MATCH_STEPS_MAX = 5 * 1000 * 1000, MATCH_HEAP_KIB_MAX = 64 * 1024, PATTERNS_KEPT = 16 };

// A pattern that was compiled before.
typedef struct Pattern {
    char *text; // NULL: empty
    size_t length;
    pcre2_code *code;
} Pattern;

// Of a runtime; the slot is chosen by a hash of the text, a newer pattern replaces an older one.
struct Patterns {
    Pattern kept[PATTERNS_KEPT];
    pcre2_match_context *limits;
};

Patterns *patterns_new(void) {
    return memory_allocate_zeroed(1, sizeof(Patterns));
}

static void forget(Pattern *pattern) {
    free(pattern->text);
    pcre2_code_free(pattern->code);
}

void patterns_free(Patterns *patterns) {
    for (int i = 0; i < PATTERNS_KEPT; i++) forget(&patterns->kept[i]);
    pcre2_match_context_free(patterns->limits);
    free(patterns);
}

static Status fail_regex(int error, const char *what) {
    PCRE2_UCHAR text[160];
    pcre2_get_error_message(error, text, sizeof text);
    if (error == PCRE2_ERROR_MATCHLIMIT || error == PCRE2_ERROR_HEAPLIMIT ||
        error == PCRE2_ERROR_DEPTHLIMIT) {
        fail(STATUS_VALUE, "%s: the pattern needs too many steps on this text and was stopped",
             what);
        return fail_help(
            "nested repetitions such as (a+)+ take exponentially long; write them without nesting");
    }
    if (error == PCRE2_ERROR_NOSUBSTRING) {
        fail(STATUS_VALUE, "%s: the replacement names a group that the pattern does not have",
             what);
        return fail_help("groups are numbered from $1; a dollar sign itself is written $$");
    }
    return fail(STATUS_VALUE, "%s: %s", what, (const char *)text);
}

static Status compile(const String *pattern, const char *what, pcre2_code **out) {
    size_t hash = pattern->length;
    for (size_t i = 0; i < pattern->length; i++)
        hash = hash * 31 + (unsigned char)pattern->bytes[i];
    Patterns *patterns = runtime_current->patterns;
    Pattern *known = &patterns->kept[hash % PATTERNS_KEPT];
    if (known->text && known->length == pattern->length &&
        memcmp(known->text, pattern->bytes, pattern->length) == 0) {
        *out = known->code;
        return STATUS_OK;
    }
    int error;
    PCRE2_SIZE offset;
    *out = pcre2_compile((PCRE2_SPTR)pattern->bytes, pattern->length, PCRE2_UTF | PCRE2_UCP, &error,
                         &offset, NULL);
    if (!*out) {
        PCRE2_UCHAR text[160];
        pcre2_get_error_message(error, text, sizeof text);
        return fail(STATUS_VALUE, "%s: pattern is not a regular expression: %s at byte %zu of %s",
                    what, (const char *)text, offset,
                    value_text((Value){.kind = VALUE_STRING, .as.string = (String *)pattern}).text);
    }
    if (!patterns->limits) {
        patterns->limits = pcre2_match_context_create(NULL);
        pcre2_set_match_limit(patterns->limits, MATCH_STEPS_MAX);
        pcre2_set_heap_limit(patterns->limits, MATCH_HEAP_KIB_MAX);
    }
    forget(known);
    *known = (Pattern){.text = memory_copy_string(pattern->bytes, pattern->length),
                       .length = pattern->length,
                       .code = *out};
    return STATUS_OK;
}

// A search through one text.
typedef struct Search {
    const String *text;
    pcre2_code *code;
    pcre2_match_data *data;
    const char *what;
    size_t at;
    uint32_t options;
} Search;

static Status search_begin(Search *search, const BuiltinCall *call, const char *what) {
    *search = (Search){.text = call->arguments[0].as.string, .what = what};
    if (!utf8_valid(search->text->bytes, search->text->length, NULL))
        return fail(STATUS_VALUE, "%s: text is not valid UTF-8", what);
    TRY(compile(call->arguments[1].as.string, what, &search->code));
    search->data = pcre2_match_data_create_from_pattern(search->code, NULL);
    return STATUS_OK;
}

// The next match: *groups of them, 0 at the end.
static Status search_next(Search *search, int *groups) {
    for (;;) {
        *groups = 0;
        if (search->at > search->text->length) return STATUS_OK;
        int found = pcre2_match(search->code, (PCRE2_SPTR)search->text->bytes, search->text->length,
                                search->at, search->options | PCRE2_NO_UTF_CHECK, search->data,
                                runtime_current->patterns->limits);
        if (found == PCRE2_ERROR_NOMATCH && search->options == 0) return STATUS_OK;
        if (found == PCRE2_ERROR_NOMATCH) {
            // No match that is not empty begins here: go on one code point later.
            search->at++;
            while (search->at < search->text->length &&
                   ((unsigned char)search->text->bytes[search->at] & 0xC0u) == 0x80u)
                search->at++;
            search->options = 0;
            continue;
        }
        if (found < 0) return fail_regex(found, search->what);
        const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(search->data);
        search->at = bounds[1];
        bool empty = bounds[0] >= bounds[1];
        search->options = empty ? PCRE2_NOTEMPTY_ATSTART | PCRE2_ANCHORED : 0;
        *groups = (int)pcre2_get_ovector_count(search->data);
        return STATUS_OK;
    }
}

static Value group_text(const Search *search, int group) {
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(search->data);
    PCRE2_SIZE begin = bounds[2 * group], end = bounds[2 * group + 1];
    if (begin == PCRE2_UNSET || end < begin) return value_none();
    return value_string(search->text->bytes + begin, end - begin);
}

Value builtin_match_regex(BuiltinCall *call) {
    Search search;
    int groups;
    TRY_VALUE(search_begin(&search, call, "match_regex"));
    Status status = search_next(&search, &groups);
    pcre2_match_data_free(search.data);
    return status == STATUS_OK ? value_bool(groups > 0) : value_fail();
}

static Value match_value(const Search *search, int groups) {
    if (groups == 1) return group_text(search, 0);
    Value list = value_list((size_t)groups - 1);
    for (int i = 1; i < groups; i++) list_push(list.as.list, group_text(search, i));
    return list;
}

Value builtin_find_all(BuiltinCall *call) {
    Search search;
    TRY_VALUE(search_begin(&search, call, "find_all"));
    Value list = value_list(0);
    for (;;) {
        int groups;
        if (search_next(&search, &groups) != STATUS_OK) {
            value_release(list);
            list = value_fail();
            break;
        }
        if (groups == 0) break;
        list_push(list.as.list, match_value(&search, groups));
    }
    pcre2_match_data_free(search.data);
    return list;
}

Value builtin_replace_regex(BuiltinCall *call) {
    const String *text = call->arguments[0].as.string, *by = call->arguments[2].as.string;
    Search search;
    TRY_VALUE(search_begin(&search, call, "replace_regex"));
    uint32_t options = PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_EXTENDED |
                       PCRE2_SUBSTITUTE_UNSET_EMPTY | PCRE2_SUBSTITUTE_OVERFLOW_LENGTH;
    PCRE2_SIZE length = text->length * 2 + 64;
    SCOPED_MEMORY char *buffer = memory_allocate(length);
    int result = PCRE2_ERROR_NOMEMORY;
    // The first try says how long the result is when it does not fit.
    for (int round = 0; round < 2 && result == PCRE2_ERROR_NOMEMORY; round++) {
        if (round) buffer = memory_resize(buffer, length);
        result =
            pcre2_substitute(search.code, (PCRE2_SPTR)text->bytes, text->length, 0, options,
                             search.data, runtime_current->patterns->limits, (PCRE2_SPTR)by->bytes,
                             by->length, (PCRE2_UCHAR *)buffer, &length);
    }
    Value value = value_fail();
    if (result < 0)
        fail_regex(result, "replace_regex");
    else
        value = value_string(buffer, length);
    pcre2_match_data_free(search.data);
    return value;
}
