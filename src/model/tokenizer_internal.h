// What the parts of a tokenizer share: its vocabulary, the steps that prepare a text, and the
// models that cut a word into pieces. Only tokenizer*.c includes it.
#ifndef MODEL_TOKENIZER_INTERNAL_H
#define MODEL_TOKENIZER_INTERNAL_H

#include <uthash.h>

#include "base/memory.h"
#include "model/tokenizer.h"

// Numbers of tokenizer.ggml.token_type.
enum { TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_USER = 4, TOKEN_BYTE = 6 };

#define SPACE_MARK "\xE2\x96\x81" // U+2581 stands for a space in pieces
enum { SPACE_MARK_BYTES = sizeof SPACE_MARK - 1 };

typedef struct Piece {
    char *bytes; // NULL: the vocabulary has no token of this id
    size_t length;
    float score;
    int type;
    UT_hash_handle hh;
} Piece;

// Two pieces that may be joined; the higher score first.
typedef struct MergePair {
    struct {
        int64_t left, right;
    } ids;
    float score;
    UT_hash_handle hh;
} MergePair;

typedef struct Words {
    VECTOR(Text) texts;
    bool at_start; // nothing of the text comes before
} Words;

// A normalizer or a pre-tokenizer: changes the words, or cuts them into more.
typedef struct TextStep TextStep;
struct TextStep {
    Status (*apply)(const TextStep *step, Words *words);
    char *pattern, *content; // NULL where the step has none
    void *regex;             // a compiled pattern
    int option;
    bool flag;
};
typedef VECTOR(TextStep) TextSteps;

typedef enum DecodeStyle { DECODE_MARKS, DECODE_BYTES, DECODE_WORDS } DecodeStyle;

struct Tokenizer {
    int refs;
    Piece *pieces; // by id
    size_t count;
    Piece *by_text;
    size_t *specials; // ids of control and user-defined pieces, longest first
    size_t special_count;
    int64_t byte_ids[256]; // -1 where the vocabulary has no piece for a byte
    int64_t bos, eos, unknown;

    TextSteps normalizers, splitters;
    void (*encode_word)(const Tokenizer *tokenizer, const char *bytes, size_t length,
                        TokenList *out);
    MergePair *pairs, *pairs_by_ids; // NULL: pieces are joined by the scores of what they make
    bool byte_fallback;  // a character without a piece becomes its bytes, else the unknown token
    bool fuse_unknown;   // neighbouring unknown tokens become one
    bool whole_words;    // a word that is a piece is not cut
    char *continuation;  // of WordPiece: "##"
    size_t word_max;     // of WordPiece: characters of a longer word are not looked at
    float unknown_score; // of Unigram
    size_t longest;      // bytes of its longest piece
    VECTOR(int64_t) before, after; // special tokens around a text

    DecodeStyle decode_style;
    bool trim_start;         // the space that encoding put in front is left out
    bool trim_after_special; // after each special token again
    bool tidy;               // no space before punctuation
    char pending[4];         // an unfinished character of tokenizer_decode_next
    size_t pending_length;
};

Tokenizer *tokenizer_new(void);
// Fills by_text, specials and byte_ids from the pieces.
void tokenizer_index(Tokenizer *tokenizer);
void tokenizer_push_id(TokenList *out, int64_t id);
const Piece *tokenizer_find(const Tokenizer *tokenizer, const char *bytes, size_t length);
int tokenizer_byte_value(const Piece *piece); // of "<0x41>"; -1 when it is none

// tokenizer_word.c: the models.
void tokenizer_encode_merging(const Tokenizer *tokenizer, const char *bytes, size_t length,
                              TokenList *out);
void tokenizer_encode_longest(const Tokenizer *tokenizer, const char *bytes, size_t length,
                              TokenList *out);
void tokenizer_encode_likeliest(const Tokenizer *tokenizer, const char *bytes, size_t length,
                                TokenList *out);

// tokenizer_steps.c: the steps. `splitting` decides what becomes of the matches of a pattern.
typedef enum Splitting {
    SPLIT_ISOLATED,
    SPLIT_REMOVED,
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT,
    SPLIT_CONTIGUOUS
} Splitting;
// When a space is put before the words.
typedef enum PrefixScheme { PREFIX_NEVER, PREFIX_FIRST, PREFIX_ALWAYS } PrefixScheme;

Status step_prepend(const TextStep *step, Words *words); // content
Status step_replace(const TextStep *step, Words *words); // pattern or regex, content
Status step_lowercase(const TextStep *step, Words *words);
Status step_unicode_form(const TextStep *step, Words *words); // option: flags of utf8proc
Status step_strip(const TextStep *step, Words *words);        // option: 1 left, 2 right
Status step_remove_accents(const TextStep *step, Words *words);
Status step_clean(const TextStep *step, Words *words); // BERT: controls out, blanks to spaces
Status step_space_ideographs(const TextStep *step, Words *words);
Status step_metaspace(const TextStep *step, Words *words); // content, option: PrefixScheme, flag
Status step_prefix_space(const TextStep *step, Words *words);
Status step_split(const TextStep *step, Words *words); // regex, option: Splitting, flag: invert
Status step_bytes(const TextStep *step, Words *words); // bytes to the letters of GPT-2
// The byte of one of those letters; -1 when it is none.
int step_byte_of_letter(uint32_t codepoint);
Status step_compile(TextStep *step, const char *pattern, size_t length) MUST_USE;
void step_release(TextStep *step);

#endif
