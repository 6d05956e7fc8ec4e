// Filters and methods of texts. What a filter is applied to becomes text first; a method needs one.
#define _GNU_SOURCE // memmem
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "chat/template_calls.h"
#include "chat/template_operators.h"

// A place in a text after which characters are looked at one by one.
typedef struct Bytes {
    const char *at;
    size_t length;
} Bytes;

static Bytes bytes_of(const String *text) {
    return (Bytes){text->bytes, text->length};
}

static bool begins_with(Bytes text, const String *part) {
    return text.length >= part->length && memcmp(text.at, part->bytes, part->length) == 0;
}

static bool ends_with(Bytes text, const String *part) {
    return text.length >= part->length &&
           memcmp(text.at + text.length - part->length, part->bytes, part->length) == 0;
}

// The first place of a part; NULL when there is none, or the part is empty.
static const char *find_part(Bytes text, const String *part) {
    return part->length > 0 ? memmem(text.at, text.length, part->bytes, part->length) : NULL;
}

static const char *find_last(Bytes text, const String *part) {
    for (; part->length > 0 && text.length >= part->length; text.length--)
        if (ends_with(text, part)) return text.at + text.length - part->length;
    return NULL;
}

// --- blanks at the ends

static bool is_blank(const char *text, size_t size) {
    uint32_t codepoint = 0;
    if (utf8_decode(text, size, &codepoint) != size) return false;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)codepoint);
    return (codepoint >= 9 && codepoint <= 13) || (codepoint >= 28 && codepoint <= 31) ||
           codepoint == 0x85 ||
           (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP);
}

static size_t first_size(Bytes text) {
    uint32_t codepoint;
    size_t size = utf8_decode(text.at, text.length, &codepoint);
    return size > 0 ? size : 1;
}

static size_t last_size(Bytes text) {
    size_t size = 1;
    while (size < text.length && size < 4 &&
           ((unsigned char)text.at[text.length - size] & 0xC0u) == 0x80u)
        size++;
    return size;
}

// Whether a character is taken off: one of a set, or a blank.
static bool goes(const char *at, size_t size, const String *set) {
    String character = {.length = size, .bytes = at};
    return set ? find_part(bytes_of(set), &character) != NULL : is_blank(at, size);
}

static Status strip(const TemplateArguments *arguments, bool left, bool right, Value *out) {
    const String *text = template_text_of(arguments->items[0]), *set = NULL;
    Value given = template_argument(arguments, 1, "chars");
    if (given.kind == VALUE_STRING) set = given.as.string;
    Bytes rest = bytes_of(text);
    for (size_t size;
         left && rest.length > 0 && (size = first_size(rest)) && goes(rest.at, size, set);
         rest.length -= size)
        rest.at += size;
    for (size_t size; right && rest.length > 0 && (size = last_size(rest)) &&
                      goes(rest.at + rest.length - size, size, set);)
        rest.length -= size;
    *out = value_string(rest.at, rest.length);
    return STATUS_OK;
}

static Status call_strip(const TemplateArguments *arguments, Value *out) {
    return strip(arguments, true, true, out);
}

static Status call_lstrip(const TemplateArguments *arguments, Value *out) {
    return strip(arguments, true, false, out);
}

static Status call_rstrip(const TemplateArguments *arguments, Value *out) {
    return strip(arguments, false, true, out);
}

static Status remove_part(const TemplateArguments *arguments, bool first, Value *out) {
    const String *text = template_text_of(arguments->items[0]), *part = NULL;
    TRY(template_need_string(arguments, 1, &part));
    Bytes rest = bytes_of(text);
    bool there = first ? begins_with(rest, part) : ends_with(rest, part);
    size_t cut = there ? part->length : 0;
    *out = value_string(rest.at + (first ? cut : 0), rest.length - cut);
    return STATUS_OK;
}

static Status call_removeprefix(const TemplateArguments *arguments, Value *out) {
    return remove_part(arguments, true, out);
}

static Status call_removesuffix(const TemplateArguments *arguments, Value *out) {
    return remove_part(arguments, false, out);
}

// --- upper and lower case

typedef utf8proc_int32_t (*CodepointMap)(utf8proc_int32_t codepoint);

static bool is_letter(uint32_t codepoint) {
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)codepoint);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

// The first character of all, or of each word, and the others.
static Status change_case(const TemplateArguments *arguments, CodepointMap first, CodepointMap rest,
                          bool words, Value *out) {
    const String *text = template_text_of(arguments->items[0]);
    Text changed = {0};
    bool begins = true;
    for (size_t at = 0; at < text->length;) {
        uint32_t codepoint = 0;
        size_t size = utf8_decode(text->bytes + at, text->length - at, &codepoint);
        CodepointMap map = begins ? first : rest;
        if (size > 0)
            text_append_codepoint(&changed, (uint32_t)map((utf8proc_int32_t)codepoint));
        else
            text_append_char(&changed, text->bytes[at]);
        begins = words && !(size > 0 && is_letter(codepoint));
        at += size > 0 ? size : 1;
    }
    *out = template_take_text(&changed);
    return STATUS_OK;
}

static Status call_upper(const TemplateArguments *arguments, Value *out) {
    return change_case(arguments, utf8proc_toupper, utf8proc_toupper, false, out);
}

static Status call_lower(const TemplateArguments *arguments, Value *out) {
    return change_case(arguments, utf8proc_tolower, utf8proc_tolower, false, out);
}

static Status call_capitalize(const TemplateArguments *arguments, Value *out) {
    return change_case(arguments, utf8proc_toupper, utf8proc_tolower, false, out);
}

static Status call_title(const TemplateArguments *arguments, Value *out) {
    return change_case(arguments, utf8proc_toupper, utf8proc_tolower, true, out);
}

// --- parts

typedef bool (*Match)(Bytes text, const String *part);

// One string or a tuple of them.
static Status match_any(const TemplateArguments *arguments, Match match, Value *out) {
    Bytes text = bytes_of(template_text_of(arguments->items[0]));
    Value parts = arguments->items[1];
    bool found = false;
    if (parts.kind == VALUE_TUPLE) {
        for (size_t i = 0; i < parts.as.list->count; i++)
            found |= parts.as.list->items[i].kind == VALUE_STRING &&
                     match(text, parts.as.list->items[i].as.string);
    } else {
        const String *part = NULL;
        TRY(template_need_string(arguments, 1, &part));
        found = match(text, part);
    }
    *out = value_bool(found);
    return STATUS_OK;
}

static Status call_startswith(const TemplateArguments *arguments, Value *out) {
    return match_any(arguments, begins_with, out);
}

static Status call_endswith(const TemplateArguments *arguments, Value *out) {
    return match_any(arguments, ends_with, out);
}

static Status find(const TemplateArguments *arguments, bool last, int64_t *out) {
    const String *text = template_text_of(arguments->items[0]), *part = NULL;
    TRY(template_need_string(arguments, 1, &part));
    Bytes all = bytes_of(text);
    const char *place = last ? find_last(all, part) : find_part(all, part);
    if (part->length == 0) place = last ? all.at + all.length : all.at;
    *out = place ? (int64_t)utf8_count(all.at, (size_t)(place - all.at)) : -1;
    return STATUS_OK;
}

static Status call_find(const TemplateArguments *arguments, Value *out) {
    int64_t place = 0;
    TRY(find(arguments, false, &place));
    *out = value_int(place);
    return STATUS_OK;
}

static Status call_rfind(const TemplateArguments *arguments, Value *out) {
    int64_t place = 0;
    TRY(find(arguments, true, &place));
    *out = value_int(place);
    return STATUS_OK;
}

static Status call_index(const TemplateArguments *arguments, Value *out) {
    TRY(call_find(arguments, out));
    return out->as.integer >= 0 ? STATUS_OK
                                : template_fail_at(arguments, "the part is not there for", "index");
}

static Status call_count(const TemplateArguments *arguments, Value *out) {
    Bytes rest = bytes_of(template_text_of(arguments->items[0]));
    const String *part = NULL;
    TRY(template_need_string(arguments, 1, &part));
    int64_t count = part->length == 0 ? (int64_t)utf8_count(rest.at, rest.length) + 1 : 0;
    for (const char *found; (found = find_part(rest, part)); count++) {
        rest.length -= (size_t)(found - rest.at) + part->length;
        rest.at = found + part->length;
    }
    *out = value_int(count);
    return STATUS_OK;
}

// {text, old, new[, count]}
static Status call_replace(const TemplateArguments *arguments, Value *out) {
    Bytes rest = bytes_of(template_text_of(arguments->items[0]));
    const String *old = NULL, *fresh = NULL;
    int64_t count = -1;
    TRY(template_need_string(arguments, 1, &old));
    TRY(template_need_string(arguments, 2, &fresh));
    Value given = template_argument(arguments, 3, "count");
    if (given.kind != VALUE_ABSENT && given.kind != VALUE_NONE)
        TRY(template_need_int(given, "replace", arguments->line, &count));
    Text changed = {0};
    Status status = STATUS_OK;
    for (const char *found; status == STATUS_OK && count != 0 && (found = find_part(rest, old));
         count--) {
        text_append(&changed, rest.at, (size_t)(found - rest.at));
        text_append(&changed, fresh->bytes, fresh->length);
        rest.length -= (size_t)(found - rest.at) + old->length;
        rest.at = found + old->length;
        status = template_check_size(changed.length, TEMPLATE_BYTES_MAX, arguments->line);
    }
    text_append(&changed, rest.at, rest.length);
    *out = template_take_text(&changed);
    return status;
}

// At runs of blanks; ends without words count nothing.
static void split_at_blanks(Bytes rest, int64_t splits, List *out) {
    for (;;) {
        for (size_t size; rest.length > 0 && is_blank(rest.at, size = first_size(rest));
             rest.length -= size)
            rest.at += size;
        size_t length = 0;
        while (length < rest.length) {
            Bytes left = {rest.at + length, rest.length - length};
            size_t size = first_size(left);
            if (is_blank(left.at, size) && splits != 0) break;
            length += size;
        }
        if (length == 0) return;
        list_push(out, value_string(rest.at, length));
        rest.at += length;
        rest.length -= length;
        splits--;
    }
}

static void split_at(Bytes rest, const String *separator, int64_t splits, List *out) {
    for (const char *found; splits != 0 && (found = find_part(rest, separator)); splits--) {
        list_push(out, value_string(rest.at, (size_t)(found - rest.at)));
        rest.length -= (size_t)(found - rest.at) + separator->length;
        rest.at = found + separator->length;
    }
    list_push(out, value_string(rest.at, rest.length));
}

static Status read_splits(const TemplateArguments *arguments, int64_t *out) {
    Value given = template_argument(arguments, 2, "maxsplit");
    *out = -1;
    return given.kind == VALUE_ABSENT ? STATUS_OK
                                      : template_need_int(given, "split", arguments->line, out);
}

// {text[, separator[, how many times]]}
static Status call_split(const TemplateArguments *arguments, Value *out) {
    Bytes text = bytes_of(template_text_of(arguments->items[0]));
    Value separator = template_argument(arguments, 1, "sep");
    int64_t splits = -1;
    TRY(read_splits(arguments, &splits));
    *out = value_list(4);
    if (separator.kind == VALUE_ABSENT || separator.kind == VALUE_NONE) {
        split_at_blanks(text, splits, out->as.list);
        return STATUS_OK;
    }
    if (separator.kind != VALUE_STRING || separator.as.string->length == 0)
        return template_fail_at(arguments, "a string is expected by", "split");
    split_at(text, separator.as.string, splits, out->as.list);
    return STATUS_OK;
}

// From the right: the pieces come in the order of the text.
static Status call_rsplit(const TemplateArguments *arguments, Value *out) {
    const String *separator = NULL;
    int64_t splits = -1;
    TRY(template_need_string(arguments, 1, &separator));
    TRY(read_splits(arguments, &splits));
    if (splits < 0) return call_split(arguments, out);
    Bytes rest = bytes_of(template_text_of(arguments->items[0]));
    *out = value_list(4);
    for (const char *found; splits != 0 && (found = find_last(rest, separator)); splits--) {
        const char *begin = found + separator->length;
        list_insert(out->as.list, 0, value_string(begin, (size_t)(rest.at + rest.length - begin)));
        rest.length = (size_t)(found - rest.at);
    }
    list_insert(out->as.list, 0, value_string(rest.at, rest.length));
    return STATUS_OK;
}

static Status call_splitlines(const TemplateArguments *arguments, Value *out) {
    Bytes rest = bytes_of(template_text_of(arguments->items[0]));
    *out = value_list(4);
    while (rest.length > 0) {
        size_t length = 0;
        while (length < rest.length && rest.at[length] != '\n' && rest.at[length] != '\r') length++;
        list_push(out->as.list, value_string(rest.at, length));
        bool pair =
            rest.length - length > 1 && rest.at[length] == '\r' && rest.at[length + 1] == '\n';
        size_t end = length + (length < rest.length) + pair;
        rest.at += end;
        rest.length -= end;
    }
    return STATUS_OK;
}

// Before, the separator, after; all before where it is not there (partition), or all after.
static Status partition(const TemplateArguments *arguments, bool last, Value *out) {
    Bytes text = bytes_of(template_text_of(arguments->items[0]));
    const String *separator = NULL;
    TRY(template_need_string(arguments, 1, &separator));
    const char *found = last ? find_last(text, separator) : find_part(text, separator);
    size_t before = found ? (size_t)(found - text.at) : last ? 0 : text.length;
    size_t cut = found ? separator->length : 0;
    *out = value_tuple(3);
    list_push(out->as.list, value_string(text.at, before));
    list_push(out->as.list, value_string(text.at + before, cut));
    list_push(out->as.list, value_string(text.at + before + cut, text.length - before - cut));
    return STATUS_OK;
}

static Status call_partition(const TemplateArguments *arguments, Value *out) {
    return partition(arguments, false, out);
}

static Status call_rpartition(const TemplateArguments *arguments, Value *out) {
    return partition(arguments, true, out);
}

static Status call_join_method(const TemplateArguments *arguments, Value *out) {
    TemplateArguments turned = {.items = {arguments->items[1], arguments->items[0]},
                                .count = 2,
                                .line = arguments->line,
                                .steps = arguments->steps};
    return template_filter("join", &turned, out);
}

// --- of what kind all characters are

static Status all_are(const TemplateArguments *arguments, bool (*is)(uint32_t codepoint),
                      Value *out) {
    const String *text = template_text_of(arguments->items[0]);
    bool all = text->length > 0;
    for (size_t at = 0, size; at < text->length && all; at += size) {
        uint32_t codepoint = 0;
        size = utf8_decode(text->bytes + at, text->length - at, &codepoint);
        all = size > 0 && is(codepoint);
    }
    *out = value_bool(all);
    return STATUS_OK;
}

static bool is_digit(uint32_t codepoint) {
    return utf8proc_category((utf8proc_int32_t)codepoint) == UTF8PROC_CATEGORY_ND;
}

static bool is_letter_or_digit(uint32_t codepoint) {
    return is_letter(codepoint) || is_digit(codepoint);
}

static bool is_space(uint32_t codepoint) {
    char bytes[4];
    return is_blank(bytes, utf8_encode(codepoint, bytes));
}

static Status call_isdigit(const TemplateArguments *arguments, Value *out) {
    return all_are(arguments, is_digit, out);
}

static Status call_isalpha(const TemplateArguments *arguments, Value *out) {
    return all_are(arguments, is_letter, out);
}

static Status call_isalnum(const TemplateArguments *arguments, Value *out) {
    return all_are(arguments, is_letter_or_digit, out);
}

static Status call_isspace(const TemplateArguments *arguments, Value *out) {
    return all_are(arguments, is_space, out);
}

// Whether there are letters with case, and all of them are of one.
static Status same_case(const TemplateArguments *arguments, utf8proc_category_t wanted,
                        utf8proc_category_t other, Value *out) {
    const String *text = template_text_of(arguments->items[0]);
    bool some = false, all = true;
    for (size_t at = 0, size; at < text->length; at += size) {
        uint32_t codepoint = 0;
        size = utf8_decode(text->bytes + at, text->length - at, &codepoint);
        if (size == 0) size = 1;
        utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)codepoint);
        some |= category == wanted;
        all &= category != other && category != UTF8PROC_CATEGORY_LT;
    }
    *out = value_bool(some && all);
    return STATUS_OK;
}

static Status call_isupper(const TemplateArguments *arguments, Value *out) {
    return same_case(arguments, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL, out);
}

static Status call_islower(const TemplateArguments *arguments, Value *out) {
    return same_case(arguments, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LU, out);
}

// --- filters of texts alone

static Status call_string(const TemplateArguments *arguments, Value *out) {
    const String *text = template_text_of(arguments->items[0]);
    *out = value_string(text->bytes, text->length);
    return STATUS_OK;
}

// Each line but the first, and blank ones unless told. {text, width, first, blank}
static Status call_indent(const TemplateArguments *arguments, Value *out) {
    Bytes rest = bytes_of(template_text_of(arguments->items[0]));
    Value width = template_argument(arguments, 1, "width");
    bool first = template_is_true(template_argument(arguments, 2, "first"));
    bool blank = template_is_true(template_argument(arguments, 3, "blank"));
    int64_t columns = 4;
    bool text = width.kind == VALUE_STRING;
    if (width.kind != VALUE_ABSENT && !text)
        TRY(template_need_int(width, "indent", arguments->line, &columns));
    if (columns < 0) columns = 0;
    TRY(template_check_size((size_t)columns, TEMPLATE_BYTES_MAX / 16, arguments->line));
    Text indented = {0};
    Status status = STATUS_OK;
    for (bool begins = true; status == STATUS_OK; begins = false) {
        const char *end = memchr(rest.at, '\n', rest.length);
        size_t length = end ? (size_t)(end - rest.at) : rest.length;
        if (begins ? first : length > 0 || blank) {
            if (text)
                text_append(&indented, width.as.string->bytes, width.as.string->length);
            else
                text_append_repeated(&indented, ' ', (size_t)columns);
        }
        text_append(&indented, rest.at, length + (end != NULL));
        status = template_check_size(indented.length, TEMPLATE_BYTES_MAX, arguments->line);
        if (!end) break;
        rest.at += length + 1;
        rest.length -= length + 1;
    }
    *out = template_take_text(&indented);
    return status;
}

static Status call_escape(const TemplateArguments *arguments, Value *out) {
    static const struct {
        char letter;
        const char *text;
    } escapes[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&#34;"}, {'\'', "&#39;"}};
    const String *text = template_text_of(arguments->items[0]);
    Text escaped = {0};
    for (size_t i = 0; i < text->length; i++) {
        size_t e = 0;
        while (e < sizeof escapes / sizeof *escapes && escapes[e].letter != text->bytes[i]) e++;
        if (e < sizeof escapes / sizeof *escapes)
            text_append_string(&escaped, escapes[e].text);
        else
            text_append_char(&escaped, text->bytes[i]);
    }
    *out = template_take_text(&escaped);
    return STATUS_OK;
}

const TemplateRow template_text_filters[] = {
    {"trim", call_strip, 1},
    {"upper", call_upper, 1},
    {"lower", call_lower, 1},
    {"title", call_title, 1},
    {"replace", call_replace, 3},
    {"capitalize", call_capitalize, 1},
    {"string", call_string, 1},
    {"safe", call_string, 1},
    {"indent", call_indent, 1},
    {"escape", call_escape, 1},
    {"e", call_escape, 1},
    {"format", template_call_percents, 1},
    {NULL, NULL, 0},
};
const TemplateRow template_text_methods[] = {
    {"strip", call_strip, 1},
    {"lstrip", call_lstrip, 1},
    {"rstrip", call_rstrip, 1},
    {"removeprefix", call_removeprefix, 2},
    {"removesuffix", call_removesuffix, 2},
    {"startswith", call_startswith, 2},
    {"endswith", call_endswith, 2},
    {"upper", call_upper, 1},
    {"lower", call_lower, 1},
    {"title", call_title, 1},
    {"capitalize", call_capitalize, 1},
    {"find", call_find, 2},
    {"rfind", call_rfind, 2},
    {"index", call_index, 2},
    {"count", call_count, 2},
    {"replace", call_replace, 3},
    {"split", call_split, 1},
    {"rsplit", call_rsplit, 2},
    {"splitlines", call_splitlines, 1},
    {"partition", call_partition, 2},
    {"rpartition", call_rpartition, 2},
    {"join", call_join_method, 2},
    {"format", template_call_format, 1},
    {"isdigit", call_isdigit, 1},
    {"isnumeric", call_isdigit, 1},
    {"isdecimal", call_isdigit, 1},
    {"isalpha", call_isalpha, 1},
    {"isalnum", call_isalnum, 1},
    {"isspace", call_isspace, 1},
    {"isupper", call_isupper, 1},
    {"islower", call_islower, 1},
    {NULL, NULL, 0},
};
