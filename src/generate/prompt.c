#include "generate/prompt.h"

#include <string.h>

#include "chat/chat.h"
#include "generate/generation.h"
#include "model/model.h"

// Whether a text begins with the mark that encoding would put before it.
static bool is_begun(const Tokenizer *tokenizer, const Text *text) {
    int64_t bos = tokenizer_bos(tokenizer);
    SCOPED_TEXT(mark);
    return bos >= 0 && tokenizer_decode(tokenizer, &bos, 1, false, &mark) == STATUS_OK &&
           mark.length <= text->length && memcmp(text_get(&mark), text_get(text), mark.length) == 0;
}

Status network_encode_chat(const Network *network, Value messages, Value tools, TokenIds *out) {
    Model *model = network_model(network).as.handle->payload;
    Tokenizer *tokenizer;
    SCOPED_TEXT(text);
    TRY(model_tokenizer(model, &tokenizer));
    TRY(chat_prompt(model, tokenizer, &(ChatPrompt){messages, tools, true}, &text));
    return network_encode(network, text_get(&text), text.length, !is_begun(tokenizer, &text), out);
}
