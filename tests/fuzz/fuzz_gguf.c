// Fuzzes the GGUF reader and the tokenizer that stands on its metadata.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    GgufFile *file;
    if (gguf_parse(bytes, length, "input", &file) != STATUS_OK) return 0;
    Tokenizer *tokenizer;
    if (tokenizer_from_gguf(file, "input", &tokenizer) == STATUS_OK) {
        static const char text[] = "Once upon a time, <s>\xF0\x9F\xA6\x99</s>";
        TokenList tokens = {0};
        Text decoded = {0};
        if (tokenizer_encode(tokenizer, text, sizeof text - 1, true, &tokens) != STATUS_OK ||
            tokenizer_decode(tokenizer, tokens.ids, tokens.count, false, &decoded) != STATUS_OK)
            abort(); // every id that encoding gives can be decoded
        text_free(&decoded);
        free(tokens.ids);
        tokenizer_release(tokenizer);
    }
    gguf_close(file);
    return 0;
}
