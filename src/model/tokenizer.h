// Tokenizers: text to token ids and back. BPE with bytes as the fallback, byte-level BPE, WordPiece
// and Unigram, from GGUF files (tokenizer.ggml.model llama, gemma4, gpt2, bert, t5) and from
// Hugging Face's tokenizer.json.
// Source: SentencePiece (Kudo, Richardson 2018), BPE mode; GGUF's tokenizer.ggml.* keys; the
// documentation of Hugging Face tokenizers.
#ifndef MODEL_TOKENIZER_H
#define MODEL_TOKENIZER_H

#include "base/text.h"
#include "model/metadata.h"

typedef struct Tokenizer Tokenizer;
struct GgufWriter;

typedef struct TokenIds {
    int64_t *ids; // free() them
    size_t count, capacity;
} TokenIds;

// From the metadata of a GGUF file, called `name`; copies what it needs. STATUS_FORMAT when it has
// no vocabulary of a kind that tl reads.
Status tokenizer_from_metadata(const Metadata *metadata, const char *name,
                               Tokenizer **out) MUST_USE;
// The same from the text of a tokenizer.json; `name` is for messages.
Status tokenizer_from_json(const uint8_t *bytes, size_t length, const char *name,
                           Tokenizer **out) MUST_USE;
// From a file of either kind, told by its content.
Status tokenizer_open(const char *path, Tokenizer **out) MUST_USE;
// Adds the tokenizer.ggml.* metadata from which tokenizer_from_metadata makes the same.
// STATUS_VALUE for what the format has no words for.
Status tokenizer_to_gguf(const Tokenizer *tokenizer, struct GgufWriter *writer) MUST_USE;
Tokenizer *tokenizer_retain(Tokenizer *tokenizer);
void tokenizer_release(Tokenizer *tokenizer);

// Appends the ids of a text. `add_special`: the beginning-of-sequence token first, where the model
// has one. Special tokens written in the text ("</s>") are recognised.
Status tokenizer_encode(const Tokenizer *tokenizer, const char *bytes, size_t length,
                        bool add_special, TokenIds *out) MUST_USE;
// Appends the text of ids, without the space that encoding put in front. Bytes that are not UTF-8
// become U+FFFD. STATUS_INDEX for an id outside the vocabulary.
Status tokenizer_decode(const Tokenizer *tokenizer, const int64_t *ids, size_t count,
                        bool skip_special, Text *out) MUST_USE;
// A text that comes id by id: the first bytes of a character that is not complete.
typedef struct TokenStream {
    char pending[4];
    size_t pending_length;
} TokenStream;
// One id after another: appends what is complete, keeps an unfinished character in the stream.
Status tokenizer_decode_next(const Tokenizer *tokenizer, TokenStream *stream, int64_t id,
                             bool skip_special, Text *out) MUST_USE;

// Appends the bytes that a token adds to a text that has begun; special tokens add none.
void tokenizer_token_bytes(const Tokenizer *tokenizer, int64_t id, Text *out);

Status tokenizer_check_id(const Tokenizer *tokenizer, int64_t id) MUST_USE; // STATUS_INDEX
int64_t tokenizer_size(const Tokenizer *tokenizer);
int64_t tokenizer_bos(const Tokenizer *tokenizer); // -1: none; the same for eos
int64_t tokenizer_eos(const Tokenizer *tokenizer);
// One more token that ends a text; the first that is said so is the tokenizer's eos.
void tokenizer_end_with(Tokenizer *tokenizer, int64_t id);
// Whether a model that says this token has come to an end: of its text or of its turn.
bool tokenizer_is_end(const Tokenizer *tokenizer, int64_t id);

#endif
