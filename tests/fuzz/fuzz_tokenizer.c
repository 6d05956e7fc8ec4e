// Fuzzes the reader of tokenizer.json and what it makes: texts to ids and back.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    Tokenizer *tokenizer;
    if (tokenizer_from_json(bytes, length, "input", &tokenizer) != STATUS_OK) return 0;
    static const char text[] =
        "Unaffable ab  abc, 12 it's <s>\xF0\x9F\xA6\x99\xFF caf\xC3\xA9</s>\n";
    TokenIds tokens = {0};
    Text decoded = {0};
    TokenStream stream = {0};
    // A pattern of the file may need too many steps; whatever ids there are can be decoded.
    if (tokenizer_encode(tokenizer, text, sizeof text - 1, true, &tokens) == STATUS_OK &&
        tokenizer_decode(tokenizer, tokens.ids, tokens.count, false, &decoded) != STATUS_OK)
        abort();
    for (size_t i = 0; i < tokens.count; i++)
        if (tokenizer_decode_next(tokenizer, &stream, tokens.ids[i], true, &decoded) != STATUS_OK)
            abort();
    text_free(&decoded);
    free(tokens.ids);
    tokenizer_release(tokenizer);
    return 0;
}
