// Models as Hugging Face publishes them: a folder with config.json, safetensors in one file or
// several with an index, and tokenizer.json. Tensors and metadata get the names and forms that GGUF
// gives them, so that one page serves both.
#ifndef MODEL_FOLDER_H
#define MODEL_FOLDER_H

#include <jansson.h>

#include "model/reader.h"
#include "model/tokenizer.h"

// How a family of models differs from the others in its files.
typedef struct FolderFamily {
    const char *model_type;   // of config.json
    const char *architecture; // of GGUF
    bool pairs;               // GGUF has the numbers that rotate together next to each other
    bool norms_from_one;      // norms are stored less 1
    bool norms_after;         // post_attention_layernorm follows attention
    bool transposed;          // matrices are [inputs, outputs]
    bool encodes;             // an encoder; of a type that may be one, where config.json says so
    bool positions_cut;       // the rows of positions up to the padding's are for no token
    bool centred;             // all norms are, and norm_eps is theirs
    bool grouped;             // joined rows lie by heads of keys: their queries, the key, the value
    bool alternating;         // experts' gates alternate with what they gate, [inputs, outputs]
    bool by_sigmoid;          // experts are scored by it
    bool foreign;             // of no row: a page of the user may know it
    const char *activation;   // what config.json may name begins so; NULL: silu
} FolderFamily;

bool folder_is(const char *path);
// Fills an empty reader. STATUS_IO, STATUS_FORMAT naming the file.
Status folder_open(Reader *reader, const char *path) MUST_USE;
bool folder_has_tokenizer(const char *path);
Status folder_tokenizer(const char *path, Tokenizer **out) MUST_USE;

// --- what its files share

// The JSON of a file of the folder; NULL in *out when there is none and it is not `required`.
Status folder_json(const char *folder, const char *name, bool required, json_t **out) MUST_USE;
// The metadata that config.json and its neighbours say, as GGUF files have it.
Status folder_metadata(const char *folder, const json_t *config, const FolderFamily *family,
                       Metadata *out) MUST_USE;
// What config.json does not say: how wide feed-forward parts are.
void folder_put_widths(const char *folder, const FolderFamily *family, Reader *reader);
// How many heads there are, by whichever word says it; NULL: none does.
const json_t *folder_heads(const json_t *config);
int64_t folder_layers(const json_t *config);
// How many heads of keys its joined rows have; 0: they are not grouped.
int64_t folder_groups(const json_t *config, const FolderFamily *family);
// Tensors that GGUF files have and folders describe in config.json: divisors of angles.
Status folder_add_factors(const char *folder, const json_t *config, Reader *reader) MUST_USE;
// What config.json says of rotary positions; NULL: nothing.
const json_t *folder_rotation(const json_t *config);
double folder_head_size(const json_t *config);
// Of a decoder: config.json with what Transformers takes for missing keys, a new reference.
Status folder_decoder_config(const char *folder, const FolderFamily *family, const json_t *config,
                             json_t **out) MUST_USE;
// Of an encoder: config.json with the keys that decoders have, a new reference.
Status folder_encoder_config(const char *folder, const FolderFamily *family, const json_t *config,
                             json_t **out) MUST_USE;
void folder_put_encoder(const json_t *config, const FolderFamily *family, Metadata *metadata);
// How many rows of positions are for no token.
int64_t folder_positions_cut(const FolderFamily *family, const json_t *config);
// What sentence-transformers' files add: how rows are pooled, and layers after that.
Status folder_add_modules(const char *folder, const FolderFamily *family, Reader *reader) MUST_USE;
// GGUF's name of a tensor, into an empty text; names that it has no other for stay.
void folder_name(const FolderFamily *family, const char *name, Text *out);

#endif
