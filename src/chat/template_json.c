// tojson, as Python's json.dumps writes values: with indent, separators, sort_keys and
// ensure_ascii.
#include <math.h>

#include "base/number.h"
#include "chat/template_calls.h"
#include "chat/template_operators.h"
#include "value/json_write.h"
#include "value/print.h"

enum { DEPTH_MAX = 100, INDENT_MAX = 32 };

typedef struct Layout {
    const TemplateArguments *arguments;
    bool sorted;
} Layout;

static Status check_opened(JsonWriter *writer) {
    const TemplateArguments *arguments = ((const Layout *)writer->context)->arguments;
    TRY(template_check_size(writer->text.length, TEMPLATE_BYTES_MAX, arguments->line));
    if (writer->depth <= DEPTH_MAX) return STATUS_OK;
    return template_fail_at(arguments, "the value is nested too deeply for", "tojson");
}

static Status write_pairs(JsonWriter *writer, const List *pairs) {
    TRY(json_open_object(writer));
    for (size_t i = 0; i < pairs->count; i++) {
        const List *pair = pairs->items[i].as.list;
        TRY(json_write_member(writer, i == 0, template_text_of(pair->items[0]), pair->items[1]));
    }
    json_close_object(writer, pairs->count == 0);
    return STATUS_OK;
}

static Status write_dict(JsonWriter *writer, Value dict) {
    const Layout *layout = writer->context;
    TemplateArguments arguments = {.items = {dict, value_bool(true)},
                                   .count = 2,
                                   .line = layout->arguments->line,
                                   .steps = layout->arguments->steps};
    Value pairs;
    TRY(template_filter(layout->sorted ? "dictsort" : "items", &arguments, &pairs));
    Status status = write_pairs(writer, pairs.as.list);
    value_release(pairs);
    return status;
}

static void write_number(Text *out, double number) {
    if (isnan(number))
        text_append_string(out, "NaN");
    else if (isinf(number))
        text_append_string(out, number > 0 ? "Infinity" : "-Infinity");
    else
        number_append_float(out, number);
}

static Status write_value(JsonWriter *writer, Value value) {
    if (json_write_plain(writer, value)) return STATUS_OK;
    switch ((ValueKind)value.kind) {
    case VALUE_FLOAT: write_number(&writer->text, value.as.number); return STATUS_OK;
    case VALUE_LIST:
    case VALUE_TUPLE: return json_write_list(writer, value.as.list);
    case VALUE_DICT: return write_dict(writer, value);
    case VALUE_STRUCT: return json_write_struct(writer, value.as.instance);
    default:
        return fail(STATUS_FORMAT, "line %d of the template: `tojson` has nothing for %s",
                    ((const Layout *)writer->context)->arguments->line,
                    value.kind == VALUE_ABSENT ? "what is undefined" : value_text(value).text);
    }
}

static Status read_layout(JsonWriter *writer, Layout *layout) {
    const TemplateArguments *arguments = layout->arguments;
    Value indent = template_argument(arguments, 2, "indent");
    Value separators = template_argument(arguments, 3, "separators");
    writer->ascii = template_is_true(template_argument(arguments, 1, "ensure_ascii"));
    layout->sorted = template_is_true(template_argument(arguments, 4, "sort_keys"));
    writer->indent = -1;
    if (indent.kind != VALUE_ABSENT && indent.kind != VALUE_NONE)
        TRY(template_need_int(indent, "tojson", arguments->line, &writer->indent));
    if (writer->indent > INDENT_MAX)
        return template_fail_at(arguments, "the indent is too large for", "tojson");
    writer->between = writer->indent < 0 ? ", " : ",";
    writer->after_key = ": ";
    bool pair = (separators.kind == VALUE_TUPLE || separators.kind == VALUE_LIST) &&
                separators.as.list->count == 2;
    if (!pair) return STATUS_OK;
    writer->between = template_text_of(separators.as.list->items[0])->bytes;
    writer->after_key = template_text_of(separators.as.list->items[1])->bytes;
    return STATUS_OK;
}

// {value, ensure_ascii, indent, separators, sort_keys}
Status template_call_tojson(const TemplateArguments *arguments, Value *out) {
    Layout layout = {.arguments = arguments};
    JsonWriter writer = {.context = &layout, .write = write_value, .opened = check_opened};
    TRY(read_layout(&writer, &layout));
    Status status = write_value(&writer, arguments->items[0]);
    *out = template_take_text(&writer.text);
    return status;
}
