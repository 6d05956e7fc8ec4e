// Fills the template of a chat.
#include "chat/chat.h"

#include <string.h>

#include "chat/template.h"
#include "chat/template_operators.h"
#include "value/convert.h"

Status chat_template(const Model *model, const char **text, size_t *length) {
    const MetaValue *found =
        metadata_find(&model_reader(model)->metadata, "tokenizer.chat_template");
    if (found && found->type == META_STRING) {
        *text = found->as.string.bytes;
        *length = found->as.string.length;
        return STATUS_OK;
    }
    (void)fail(STATUS_KEY, "%s has no template of chats (tokenizer.chat_template)",
               model_path(model));
    return fail_help("write the prompt as the model expects it, and call generate");
}

// The text of a special token; "" when there is none.
static Value token_text(const Tokenizer *tokenizer, int64_t id) {
    SCOPED_TEXT(text);
    Value value = value_string("", 0);
    if (id >= 0 && tokenizer_decode(tokenizer, &id, 1, false, &text) == STATUS_OK)
        value = value_string(text_get(&text), text.length);
    return value;
}

static Value one_message(Value content) {
    Value message = value_dict(), list = value_list(1);
    dict_set_word(message.as.dict, "role", value_cstring("user"));
    dict_set_word(message.as.dict, "content", value_retain(content));
    list_push(list.as.list, message);
    return list;
}

// Templates leave out or print as it is what they do not expect: a message without content would be
// answered like an empty one.
static Status check_message(Value message) {
    if (message.kind != VALUE_DICT && message.kind != VALUE_STRUCT)
        return fail_kind("a message", "a dictionary or struct with role and content", message);
    Value role = template_member(message, "role"), content = template_member(message, "content");
    if (role.kind != VALUE_STRING) return fail_kind("the role of a message", "a string", role);
    bool calls = strcmp(role.as.string->bytes, "assistant") == 0; // instead of a text
    bool none = content.kind == VALUE_NONE || content.kind == VALUE_ABSENT;
    bool listed = content.kind == VALUE_LIST || content.kind == VALUE_TUPLE;
    if (content.kind == VALUE_STRING || listed || (calls && none)) return STATUS_OK;
    return fail_kind("the content of a message", "a string or a list of parts", content);
}

static Status check_messages(Value messages) {
    if (messages.kind == VALUE_STRING) return STATUS_OK;
    if (messages.kind != VALUE_LIST && messages.kind != VALUE_TUPLE)
        return fail_kind("messages", "a string or a list of messages", messages);
    for (size_t i = 0; i < messages.as.list->count; i++)
        TRY(check_message(messages.as.list->items[i]));
    return STATUS_OK;
}

Status chat_prompt(const Model *model, const Tokenizer *tokenizer, const ChatPrompt *prompt,
                   Text *out) {
    Template *template;
    const char *text;
    size_t length;
    TRY(check_messages(prompt->messages));
    TRY(chat_template(model, &text, &length));
    TRY(template_parse(text, length, &template));
    Value messages = prompt->messages, variables = value_dict();
    bool single = messages.kind == VALUE_STRING;
    Dict *dict = variables.as.dict;
    dict_set_word(dict, "messages", single ? one_message(messages) : value_retain(messages));
    if (prompt->tools.kind != VALUE_NONE) dict_set_word(dict, "tools", value_retain(prompt->tools));
    dict_set_word(dict, "add_generation_prompt", value_bool(prompt->answer));
    dict_set_word(dict, "bos_token", token_text(tokenizer, tokenizer_bos(tokenizer)));
    dict_set_word(dict, "eos_token", token_text(tokenizer, tokenizer_eos(tokenizer)));
    Status status = template_render(template, variables, out);
    value_release(variables);
    template_free(template);
    return status;
}
