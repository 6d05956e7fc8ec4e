// Fuzzes the GGUF reader, the tokenizer that stands on its metadata, and copying what was read.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/gguf.h"
#include "model/gguf_write.h"
#include "model/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

// Keys may come twice, which the writer refuses; nothing else may go wrong before the disk.
static void copy_pairs(const Metadata *metadata) {
    GgufWriter *writer = gguf_writer_new();
    for (size_t i = 0; i < metadata->count; i++)
        if (gguf_writer_copy(writer, &metadata->items[i]) != STATUS_OK) break;
    gguf_writer_free(writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    Reader file = {0};
    if (gguf_parse(&file, bytes, length, "input") != STATUS_OK) {
        reader_clear(&file);
        return 0;
    }
    Tokenizer *tokenizer;
    if (tokenizer_from_metadata(&file.metadata, "input", &tokenizer) == STATUS_OK) {
        static const char text[] = "Once upon a time, <s>\xF0\x9F\xA6\x99</s>";
        TokenIds tokens = {0};
        Text decoded = {0};
        if (tokenizer_encode(tokenizer, text, sizeof text - 1, true, &tokens) != STATUS_OK ||
            tokenizer_decode(tokenizer, tokens.ids, tokens.count, false, &decoded) != STATUS_OK)
            abort(); // every id that encoding gives can be decoded
        GgufWriter *writer = gguf_writer_new();
        if (tokenizer_to_gguf(tokenizer, writer) == STATUS_OK) text_append_char(&decoded, '.');
        gguf_writer_free(writer);
        text_free(&decoded);
        free(tokens.ids);
        tokenizer_release(tokenizer);
    }
    copy_pairs(&file.metadata);
    reader_clear(&file);
    return 0;
}
