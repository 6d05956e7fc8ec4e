// Fuzzes templates of chats: parsing, and what a template makes of a chat.
#include <stddef.h>
#include <stdint.h>

#include "chat/template.h"
#include "value/heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static Value message(const char *role, const char *content) {
    Value dict = value_dict();
    dict_set_word(dict.as.dict, "role", value_cstring(role));
    dict_set_word(dict.as.dict, "content", value_cstring(content));
    return dict;
}

static Value variables(void) {
    Value dict = value_dict(), messages = value_list(3);
    list_push(messages.as.list, message("system", "Be brief."));
    list_push(messages.as.list, message("user", " Hi \xF0\x9F\xA6\x99 "));
    list_push(messages.as.list, message("assistant", ""));
    dict_set_word(dict.as.dict, "messages", messages);
    dict_set_word(dict.as.dict, "add_generation_prompt", value_bool(true));
    dict_set_word(dict.as.dict, "bos_token", value_cstring("<s>"));
    return dict;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    heap_start();
    Template *template;
    if (template_parse((const char *)bytes, length, &template) != STATUS_OK) return 0;
    Text text = {0};
    Value given = variables();
    Status status = template_render(template, given, &text);
    if (status == STATUS_OK) text_append_char(&text, '.');
    value_release(given);
    text_free(&text);
    template_free(template);
    return 0;
}
