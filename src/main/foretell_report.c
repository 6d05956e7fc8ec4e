// What tl check --memory writes: the findings of foretell.c in words, or as JSON.
#include "main/foretell_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ranks/ranks.h"

const ForetellPurpose foretell_purposes[PURPOSE_COUNT] = {
    [PURPOSE_PARAMETER] = {"parameters", "of it for what is trained"},
    [PURPOSE_TAPE] = {"tape", "of it for results that backward reads"},
    [PURPOSE_OPTIMIZER] = {"optimizer", "of it for states of optimizers"},
    [PURPOSE_CACHE] = {"kv cache", "of it for keys and values"},
};

static double megabytes(const json_t *found, const char *key) {
    return (double)json_integer_value(json_object_get(found, key)) / 0x1p20;
}

static void append_place(Text *out, const json_t *place) {
    if (!json_is_object(place)) {
        text_append_string(out, "an unknown place");
        return;
    }
    text_format(out, "%s:%lld:%lld", json_string_value(json_object_get(place, "file")),
                (long long)json_integer_value(json_object_get(place, "line")),
                (long long)json_integer_value(json_object_get(place, "column")));
}

static void append_amount(Text *out, const char *what, const json_t *found, const char *key) {
    text_format(out, "%-10s%12.2f MB", what, megabytes(found, key));
}

static const char *peak_key(const json_t *found) {
    return json_is_integer(json_object_get(found, "peak")) ? "peak" : "estimate";
}

static void append_holders(Text *out, const json_t *found) {
    const json_t *holder;
    size_t i;
    double peak = megabytes(found, peak_key(found));
    if (peak > 0) text_append_string(out, "held at the peak:\n");
    json_array_foreach(json_object_get(found, "holders"), i, holder) {
        double held = megabytes(holder, "bytes");
        text_format(out, "%9.2f MB%7.1f %%   ", held, 100 * held / peak);
        append_place(out, json_object_get(holder, "at"));
        text_format(out, "    %s\n", json_string_value(json_object_get(holder, "expression")));
    }
}

static void append_others(Text *out, const json_t *found) {
    const json_t *other;
    size_t i;
    json_array_foreach(json_object_get(found, "others"), i, other) {
        append_amount(out, json_string_value(json_object_get(other, "device")), other,
                      peak_key(other));
        text_append_string(out, "   at ");
        append_place(out, json_object_get(other, "at"));
        text_append_char(out, '\n');
        append_holders(out, other);
        append_amount(out, "pool", other, "cached");
        text_append_string(out, "   kept for later at the end\n");
    }
}

static bool is_open(const json_t *place) {
    return json_is_true(json_object_get(place, "open"));
}

// Of an estimate those places count that nothing bounds, where there are some.
static void append_loose(Text *out, const json_t *found) {
    const json_t *place, *places = json_object_get(found, "loose");
    bool claimed = json_is_integer(json_object_get(found, "peak")), open = false;
    size_t i, shown = 0;
    json_array_foreach(places, i, place) open |= is_open(place);
    json_array_foreach(places, i, place) {
        if (open && !is_open(place)) continue;
        if (shown++ > 0)
            text_append_string(out, ", ");
        else
            text_append_string(
                out, claimed
                         ? "bound: no run takes more, whatever the numbers are that are read at "
                         : "no bound: nothing limits what the numbers decide that are read at ");
        append_place(out, place);
    }
    if (shown > 0) text_append_char(out, '\n');
}

static void append_doubts(Text *out, const json_t *found) {
    append_loose(out, found);
    const json_t *failure = json_object_get(found, "failure");
    if (!json_is_object(failure)) return;
    text_append_string(out, "the program ends with an error at ");
    append_place(out, json_object_get(failure, "at"));
    text_format(out, ": %s\n", json_string_value(json_object_get(failure, "message")));
}

// What is held at the peak, and where another moment has more, that.
static void append_purpose(Text *out, const json_t *found, const ForetellPurpose *purpose) {
    double at_peak = megabytes(found, purpose->key);
    double most = megabytes(json_object_get(found, "most"), purpose->key);
    if (most == 0) return;
    append_amount(out, purpose->key, found, purpose->key);
    text_format(out, "   %s", purpose->meaning);
    if (most > at_peak) text_format(out, ", %.2f MB at another moment", most);
    text_append_char(out, '\n');
}

static void append_found(Text *text, const json_t *found) {
    const json_t *operation = json_object_get(found, "operation");
    text_format(text, "=== Device memory foretold: %s %s ===\n",
                json_string_value(json_object_get(found, "device")),
                json_string_value(json_object_get(found, "description")));
    append_amount(text, peak_key(found), found, peak_key(found));
    if (json_is_object(json_object_get(found, "at"))) {
        text_append_string(text, "   at ");
        append_place(text, json_object_get(found, "at"));
    }
    text_append_char(text, '\n');
    for (int i = PURPOSE_RESULT + 1; i < PURPOSE_COUNT; i++) {
        append_purpose(text, found, &foretell_purposes[i]);
    }
    append_amount(text, "at once", operation, "bytes");
    text_append_string(text, "   for the largest operation, at ");
    append_place(text, json_object_get(operation, "at"));
    text_append_char(text, '\n');
    append_amount(text, "pool", found, "cached");
    text_append_string(text, "   kept for later at the end\n");
    if (megabytes(found, "mapped") > 0) {
        append_amount(text, "mapped", found, "mapped");
        text_append_string(text, "   of files, used where they are\n");
    }
    if (megabytes(found, "repacked") > 0) {
        append_amount(text, "repacked", found, "repacked");
        text_append_string(text, "   of weights, in the layout of products\n");
    }
    append_holders(text, found);
    append_others(text, found);
    append_doubts(text, found);
}

// An array where there are several ranks, of which each brings its part.
static void append_json(Text *text, const json_t *found) {
    int own = ranks_own(), count = ranks_count();
    SCOPED_MEMORY char *dumped = json_dumps(found, JSON_INDENT(2));
    if (count > 1) text_append_string(text, own == 0 ? "[\n" : ",\n");
    text_append_string(text, dumped);
    if (count > 1 && own == count - 1) text_append_string(text, "\n]");
    if (own == count - 1) text_append_char(text, '\n');
}

// The first rank has those of all.
Status foretell_report(const json_t *found, bool json) {
    SCOPED_TEXT(text);
    if (json)
        append_json(&text, found);
    else
        append_found(&text, found);
    if (!json) ranks_number_lines(&text);
    Status status = ranks_join_texts(&text);
    fputs(text_get(&text), stdout);
    return status;
}
