// A syntax tree as an S-expression: one node one list, names and constants as written. Two trees
// are the same exactly when their texts are; places do not count.
#include "parser/dump.h"

#include <stdio.h>
#include <stdlib.h>

// In quotes, with whatever could be taken for the end of the text escaped.
static void dump_text(Text *out, const char *bytes, size_t length) {
    text_append_char(out, '"');
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '"' || bytes[i] == '\\') text_append_char(out, '\\');
        if (bytes[i] == '\0')
            text_append_string(out, "\\0");
        else
            text_append_char(out, bytes[i]);
    }
    text_append_char(out, '"');
}

// As short as %g writes it, or with all digits when that would be another number.
static void dump_float(Text *out, double number) {
    char digits[40];
    snprintf(digits, sizeof digits, "%g", number);
    if (strtod(digits, NULL) != number) snprintf(digits, sizeof digits, "%.17g", number);
    text_format(out, "%sf", digits);
}

static void dump_list(Text *out, const char *head, NodeList list) {
    text_format(out, "(%s", head);
    for (size_t i = 0; i < list.count; i++) {
        text_append_char(out, ' ');
        dump_node(out, list.items[i]);
    }
    text_append_char(out, ')');
}

// " child", or nothing for a NULL child.
static void dump_child(Text *out, const Node *child) {
    if (!child) return;
    text_append_char(out, ' ');
    dump_node(out, child);
}

static void dump_module(Text *out, const Node *module) {
    if (module) text_format(out, "%s.", module->as.name.word.text);
}

static void dump_type(Text *out, const TypeNode *type) {
    dump_module(out, type->module);
    if (type->kind == TYPE_TUPLE)
        text_append_string(out, "(tuple");
    else
        text_append_string(out, type->name.text);
    if (type->kind == TYPE_TENSOR) {
        text_append_char(out, '[');
        for (size_t i = 0; i < type->dimension_count; i++) {
            const Dimension *dimension = &type->dimensions[i];
            if (i > 0) text_append_char(out, ',');
            if (dimension->kind == DIMENSION_ANY)
                text_append_char(out, '?');
            else if (dimension->kind == DIMENSION_NAME)
                text_append_string(out, dimension->name.text);
            else
                text_format(out, "%lld", (long long)dimension->number);
        }
        text_append_char(out, ']');
    } else if (type->argument_count > 0) {
        if (type->kind == TYPE_NAMED) text_append_char(out, '<');
        for (size_t i = 0; i < type->argument_count; i++) {
            if (i > 0 || type->kind == TYPE_TUPLE) text_append_char(out, ' ');
            dump_type(out, type->arguments[i]);
        }
        if (type->kind == TYPE_NAMED) text_append_char(out, '>');
    }
    if (type->kind == TYPE_TUPLE) text_append_char(out, ')');
    if (type->optional) text_append_char(out, '?');
    if (type->learnable) text_append_string(out, " learnable");
}

static void dump_types(Text *out, TypeNode **types, size_t count) {
    if (count > 0) text_append_char(out, '<');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) text_append_char(out, ' ');
        dump_type(out, types[i]);
    }
    if (count > 0) text_append_char(out, '>');
}

static void dump_pattern(Text *out, const Pattern *pattern) {
    static const char *const heads[] = {"_", "", "", "|", "..", "", "tuple"};
    switch (pattern->kind) {
    case PATTERN_ANY: text_append_char(out, '_'); return;
    case PATTERN_BIND: text_append_string(out, pattern->name.text); return;
    case PATTERN_LITERAL: dump_node(out, pattern->low); return;
    case PATTERN_RANGE:
        text_append_string(out, pattern->inclusive ? "(..=" : "(..");
        dump_child(out, pattern->low);
        dump_child(out, pattern->high);
        break;
    default:
        text_append_char(out, '(');
        dump_module(out, pattern->module);
        text_append_string(out, pattern->kind == PATTERN_STRUCT ? pattern->name.text
                                                                : heads[pattern->kind]);
        for (size_t i = 0; i < pattern->part_count; i++) {
            text_append_char(out, ' ');
            if (pattern->kind == PATTERN_STRUCT) text_format(out, "%s: ", pattern->fields[i].text);
            dump_pattern(out, pattern->parts[i]);
        }
        if (pattern->rest) text_append_string(out, " ..");
    }
    text_append_char(out, ')');
}

static void dump_arguments(Text *out, const Argument *arguments, size_t count) {
    for (size_t i = 0; i < count; i++) {
        text_append_char(out, ' ');
        if (arguments[i].name.text) text_format(out, "%s: ", arguments[i].name.text);
        dump_node(out, arguments[i].value);
    }
}

static void dump_function(Text *out, const FunctionNode *function) {
    text_format(out, "(fn%s%s", function->name.text ? " " : "",
                function->name.text ? function->name.text : "");
    for (size_t i = 0; i < function->type_count; i++)
        text_format(out, "%s%s%s", i > 0 ? " " : "<", function->type_parameters[i].text,
                    i + 1 < function->type_count ? "" : ">");
    text_append_string(out, " (");
    for (size_t i = 0; i < function->parameter_count; i++) {
        const Parameter *parameter = &function->parameters[i];
        text_format(out, "%s%s", i > 0 ? " " : "", parameter->name.text);
        if (parameter->type) {
            text_append_string(out, ": ");
            dump_type(out, parameter->type);
        }
        if (parameter->fallback) {
            text_append_string(out, " = ");
            dump_node(out, parameter->fallback);
        }
    }
    text_append_char(out, ')');
    if (function->result) {
        text_append_string(out, " -> ");
        dump_type(out, function->result);
    }
    dump_child(out, function->body);
    text_append_char(out, ')');
}

static void dump_subscripts(Text *out, const Node *node) {
    for (size_t i = 0; i < node->as.index.count; i++) {
        const Subscript *subscript = &node->as.index.subscripts[i];
        text_append_char(out, ' ');
        if (subscript->kind == SUBSCRIPT_ELLIPSIS) {
            text_append_string(out, "...");
        } else if (subscript->kind == SUBSCRIPT_INDEX) {
            if (subscript->looped) text_append_char(out, '*');
            dump_node(out, subscript->index);
            if (subscript->dotted) text_append_char(out, '.');
        } else {
            if (subscript->start) dump_node(out, subscript->start);
            text_append_char(out, ':');
            if (subscript->stop) dump_node(out, subscript->stop);
            if (subscript->step) {
                text_append_char(out, ':');
                dump_node(out, subscript->step);
            }
        }
    }
}

static void dump_format_string(Text *out, const Node *node) {
    const Word *texts = node->as.format_string.texts;
    text_append_string(out, "(f ");
    dump_text(out, texts[0].text, texts[0].length);
    for (size_t i = 0; i < node->as.format_string.values.count; i++) {
        dump_child(out, node->as.format_string.values.items[i]);
        if (node->as.format_string.specs[i])
            text_format(out, " :%s", node->as.format_string.specs[i]);
        text_append_char(out, ' ');
        dump_text(out, texts[i + 1].text, texts[i + 1].length);
    }
    text_append_char(out, ')');
}

static void dump_dictionary(Text *out, const Node *node) {
    text_append_string(out, "(dict");
    for (size_t i = 0; i < node->as.dict.keys.count; i++) {
        dump_child(out, node->as.dict.keys.items[i]);
        text_append_char(out, ':');
        dump_child(out, node->as.dict.values.items[i]);
    }
}

static void dump_loop_names(Text *out, const Node *node) {
    if (node->as.for_loop.index) {
        dump_pattern(out, node->as.for_loop.index);
        text_append_string(out, ", ");
    }
    dump_pattern(out, node->as.for_loop.pattern);
}

static void dump_comprehension(Text *out, const Node *node) {
    text_append_string(out, "(each");
    dump_child(out, node->as.for_loop.body);
    text_append_char(out, ' ');
    dump_loop_names(out, node);
    dump_child(out, node->as.for_loop.iterable);
    dump_child(out, node->as.for_loop.condition);
}

static void dump_cast(Text *out, const Node *node) {
    text_append_string(out, "(as");
    dump_child(out, node->as.cast.value);
    text_append_char(out, ' ');
    dump_type(out, node->as.cast.type);
}

static void dump_call(Text *out, const Node *node) {
    if (node->kind == NODE_CALL) {
        text_append_string(out, "(call");
        dump_child(out, node->as.call.callee);
        dump_arguments(out, node->as.call.arguments, node->as.call.count);
    } else {
        text_format(out, "(.%s()", node->as.method.name.text);
        dump_child(out, node->as.method.receiver);
        dump_arguments(out, node->as.method.arguments, node->as.method.count);
    }
}

static void dump_path(Text *out, const Node *node) {
    text_append_string(out, "(:: ");
    dump_module(out, node->as.path.module);
    text_append_string(out, node->as.path.type.text);
    dump_types(out, node->as.path.type_arguments, node->as.path.type_count);
    text_format(out, " %s", node->as.path.name.text);
}

static void dump_struct_literal(Text *out, const Node *node) {
    text_append_string(out, "(new ");
    dump_module(out, node->as.struct_literal.module);
    text_append_string(out, node->as.struct_literal.type.text);
    dump_types(out, node->as.struct_literal.type_arguments, node->as.struct_literal.type_count);
    for (size_t i = 0; i < node->as.struct_literal.count; i++) {
        text_format(out, " %s:", node->as.struct_literal.names[i].text);
        dump_child(out, node->as.struct_literal.values[i]);
    }
}

static void dump_branch(Text *out, const Node *node) {
    text_append_string(out, "(if");
    dump_child(out, node->as.branch.condition);
    dump_child(out, node->as.branch.then_branch);
    dump_child(out, node->as.branch.else_branch);
}

static void dump_match(Text *out, const Node *node) {
    text_append_string(out, "(match");
    dump_child(out, node->as.match.subject);
    for (size_t i = 0; i < node->as.match.count; i++) {
        const MatchArm *arm = &node->as.match.arms[i];
        text_append_string(out, " [");
        dump_pattern(out, arm->pattern);
        if (arm->guard) text_append_string(out, " if");
        dump_child(out, arm->guard);
        text_append_string(out, " =>");
        dump_child(out, arm->body);
        text_append_char(out, ']');
    }
}

static void dump_try(Text *out, const Node *node) {
    text_append_string(out, "(try");
    dump_child(out, node->as.attempt.body);
    if (node->as.attempt.name.text) text_format(out, " %s", node->as.attempt.name.text);
    dump_child(out, node->as.attempt.handler);
}

// Whether the node is written without a list of its own; it is written then.
static bool dump_atom(Text *out, const Node *node) {
    switch (node->kind) {
    case NODE_INT: text_format(out, "%lld", (long long)node->as.integer); return true;
    case NODE_FLOAT: dump_float(out, node->as.number); return true;
    case NODE_BOOL: text_append_string(out, node->as.boolean ? "true" : "false"); return true;
    case NODE_NONE: text_append_string(out, "none"); return true;
    case NODE_STRING: dump_text(out, node->as.string.bytes, node->as.string.length); return true;
    case NODE_FORMAT_STRING: dump_format_string(out, node); return true;
    case NODE_NAME: text_append_string(out, node->as.name.word.text); return true;
    case NODE_LIST: dump_list(out, "list", node->as.list); return true;
    case NODE_TUPLE: dump_list(out, "tuple", node->as.list); return true;
    case NODE_LAMBDA: dump_function(out, node->as.function); return true;
    case NODE_BLOCK: dump_list(out, "block", node->as.block.statements); return true;
    default: return false;
    }
}

static void dump_expression(Text *out, const Node *node) {
    if (dump_atom(out, node)) return;
    switch (node->kind) {
    case NODE_DICT: dump_dictionary(out, node); break;
    case NODE_COMPREHENSION: dump_comprehension(out, node); break;
    case NODE_UNARY:
    case NODE_BINARY:
    case NODE_LOGICAL:
        text_format(out, "(%s", operator_info[node->op].spelling);
        dump_child(out, node->as.binary.left);
        dump_child(out, node->as.binary.right);
        break;
    case NODE_RANGE:
        text_append_string(out, node->as.range.inclusive ? "(..=" : "(..");
        dump_child(out, node->as.range.low);
        dump_child(out, node->as.range.high);
        break;
    case NODE_ASK:
        text_append_string(out, "(ask");
        dump_child(out, node->as.ask.value);
        break;
    case NODE_CAST: dump_cast(out, node); break;
    case NODE_CALL:
    case NODE_METHOD_CALL: dump_call(out, node); break;
    case NODE_FIELD:
        text_format(out, "(.%s", node->as.field.name.text);
        dump_child(out, node->as.field.object);
        break;
    case NODE_INDEX:
        text_append_string(out, "(index");
        dump_child(out, node->as.index.object);
        dump_subscripts(out, node);
        break;
    case NODE_PATH: dump_path(out, node); break;
    case NODE_STRUCT_LITERAL: dump_struct_literal(out, node); break;
    case NODE_IF: dump_branch(out, node); break;
    case NODE_MATCH: dump_match(out, node); break;
    case NODE_TRY: dump_try(out, node); break;
    default: text_append_string(out, "(?");
    }
    text_append_char(out, ')');
}

static void dump_struct(Text *out, const Node *node) {
    text_format(out, "(struct %s", node->as.structure.name.text);
    for (size_t i = 0; i < node->as.structure.type_count; i++)
        text_format(out, "%s%s", i > 0 ? " " : "<", node->as.structure.type_parameters[i].text);
    if (node->as.structure.type_count > 0) text_append_char(out, '>');
    for (size_t i = 0; i < node->as.structure.field_count; i++) {
        text_format(out, " %s: ", node->as.structure.fields[i].text);
        dump_type(out, node->as.structure.types[i]);
        if (node->as.structure.fallbacks[i]) text_append_string(out, " =");
        dump_child(out, node->as.structure.fallbacks[i]);
    }
    text_append_char(out, ')');
}

static void dump_learn(Text *out, const Node *node) {
    text_append_string(out, "(learn");
    for (size_t i = 0; i < node->as.learn.count; i++) {
        const Setting *setting = &node->as.learn.settings[i];
        text_format(out, " %s:", setting->name.text);
        dump_child(out, setting->value);
        if (setting->of) text_append_string(out, " of");
        dump_child(out, setting->of);
    }
    dump_child(out, node->as.learn.body);
    text_append_char(out, ')');
}

static void dump_let(Text *out, const Node *node) {
    text_append_string(out, "(let ");
    dump_pattern(out, node->as.let.pattern);
    if (node->as.let.type) {
        text_append_string(out, ": ");
        dump_type(out, node->as.let.type);
    }
    dump_child(out, node->as.let.value);
}

static void dump_assignment(Text *out, const Node *node) {
    static const char *const projections[] = {"", "sum", "max", "min", "avg"};
    text_format(out, "(%s%s%s%s", projections[node->as.assign.projection],
                node->as.assign.arrow ? "<-" : "", node->as.assign.define ? ":" : "",
                operator_info[node->op].spelling);
    if (node->op != OPERATOR_NONE) text_append_char(out, '=');
    dump_child(out, node->as.assign.target);
    dump_child(out, node->as.assign.value);
}

static void dump_for(Text *out, const Node *node) {
    text_append_string(out, "(for ");
    dump_loop_names(out, node);
    dump_child(out, node->as.for_loop.iterable);
    dump_child(out, node->as.for_loop.body);
}

static void dump_impl(Text *out, const Node *node) {
    const char *trait = node->as.impl.trait.text;
    text_format(out, "(impl %s%s", trait ? trait : "", trait ? " for " : "");
    dump_module(out, node->as.impl.module);
    text_append_string(out, node->as.impl.name.text);
    dump_types(out, node->as.impl.type_arguments, node->as.impl.type_count);
    for (size_t i = 0; i < node->as.impl.function_count; i++)
        dump_child(out, node->as.impl.functions[i]);
}

static void dump_import(Text *out, const Node *node) {
    text_append_string(out, "(import ");
    dump_text(out, node->as.import.path.text, node->as.import.path.length);
    if (node->as.import.alias.text) text_format(out, " as %s", node->as.import.alias.text);
}

static void dump_section(Text *out, const char *head, const Node *node) {
    text_format(out, "(%s %s", head, node->as.section.name.text);
    dump_child(out, node->as.section.function->body);
}

static void dump_statement(Text *out, const Node *node) {
    switch (node->kind) {
    case NODE_LET: dump_let(out, node); break;
    case NODE_TENSOR_DECLARATION:
        text_format(out, "(tensor %s: ", node->as.tensor.name.text);
        dump_type(out, node->as.tensor.type);
        dump_child(out, node->as.tensor.value);
        break;
    case NODE_ASSIGN: dump_assignment(out, node); break;
    case NODE_WHILE:
    case NODE_LOOP:
        text_append_string(out, node->kind == NODE_LOOP ? "(loop" : "(while");
        dump_child(out, node->as.loop.condition);
        dump_child(out, node->as.loop.body);
        break;
    case NODE_FOR: dump_for(out, node); break;
    case NODE_BREAK: text_append_string(out, "(break"); break;
    case NODE_CONTINUE: text_append_string(out, "(continue"); break;
    case NODE_RETURN:
        text_append_string(out, "(return");
        dump_child(out, node->as.returned.value);
        break;
    case NODE_WITH:
        text_format(out, "(with %s", node->as.with.word.text);
        dump_child(out, node->as.with.argument);
        dump_child(out, node->as.with.body);
        break;
    case NODE_IMPL: dump_impl(out, node); break;
    case NODE_IMPORT: dump_import(out, node); break;
    case NODE_TEST: dump_section(out, "test", node); break;
    case NODE_BENCH: dump_section(out, "bench", node); break;
    case NODE_MAIN: dump_section(out, "section", node); break;
    default: text_append_string(out, "(?");
    }
    text_append_char(out, ')');
}

void dump_node(Text *out, const Node *node) {
    switch (node->kind) {
    case NODE_EXPRESSION_STATEMENT:
        if (node->as.expression.unused_start) text_append_string(out, "new-start:");
        dump_node(out, node->as.expression.value);
        break;
    case NODE_FUNCTION: dump_function(out, node->as.function); break;
    case NODE_STRUCT: dump_struct(out, node); break;
    case NODE_LEARN: dump_learn(out, node); break;
    default:
        if (node->kind <= NODE_BLOCK)
            dump_expression(out, node);
        else
            dump_statement(out, node);
    }
}
