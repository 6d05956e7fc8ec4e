// What the parts of a tokenizer share: its vocabulary, the steps that prepare a text, and the
// models that cut a word into pieces. Only tokenizer*.c includes it.
#ifndef MODEL_TOKENIZER_INTERNAL_H
#define MODEL_TOKENIZER_INTERNAL_H

#include <uthash.h>

#include "base/memory.h"
#include "device/work.h"
#include "model/tokenizer.h"

enum { WORD_DEFAULT = 100 }; // WordPiece: characters of the longest word that is looked at

// Numbers of tokenizer.ggml.token_type.
enum {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6
};

#define SPACE_MARK "\xE2\x96\x81" // U+2581 stands for a space in pieces
enum { SPACE_MARK_BYTES = sizeof SPACE_MARK - 1 };

typedef struct Piece {
    char *bytes; // NULL: the vocabulary has no token of this id
    size_t length;
    float score;
    int type;
    unsigned edges; // of a special token: EDGE_...
    UT_hash_handle hh;
} Piece;

// What a special token in a text does to its surroundings: it takes the blanks before or after it
// along, or counts only as a word of its own.
enum { EDGE_BLANKS_BEFORE = 1, EDGE_BLANKS_AFTER = 2, EDGE_WORD = 4 };

// The ids of pieces that are cut out of texts, found by their text.
typedef struct Special {
    size_t id;
    UT_hash_handle hh;
} Special;

// Two pieces that may be joined; the higher score first.
typedef struct MergePair {
    struct {
        int64_t left, right;
    } ids;
    float score;
    const Piece *joined; // NULL when the vocabulary lacks it
    UT_hash_handle hh;
} MergePair;

// The words of a text, one behind the other.
typedef struct Words {
    Text text;
    VECTOR(size_t) ends; // where each of them ends in it
    bool at_start;       // nothing of the text comes before
} Words;
typedef struct TextWord {
    const char *bytes;
    size_t length;
} TextWord;
static inline TextWord words_at(const Words *words, size_t index) {
    ASSERT(index < words->ends.count);
    size_t begin = index > 0 ? words->ends.items[index - 1] : 0;
    return (TextWord){text_get(&words->text) + begin, words->ends.items[index] - begin};
}
static inline void words_end(Words *words) { // what was appended since the last one is a word
    VECTOR_PUSH(&words->ends, words->text.length);
}
void words_free(Words *words);

// A normalizer or a pre-tokenizer: changes the words, or cuts them into more.
typedef struct TextStep TextStep;
typedef Status (*StepFunction)(const TextStep *step, Words *words);
struct TextStep {
    StepFunction apply;
    char *pattern, *content; // NULL where the step has none
    size_t content_length;   // of a map of characters, which is bytes
    void *regex;             // of a pattern that is compiled
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
    Special *specials, *special_by_text;
    VECTOR(size_t) special_lengths; // each once, longest first
    bool special_begins[256];       // by first byte
    int64_t byte_ids[256];          // -1 where the vocabulary has no piece for a byte
    int64_t bos, eos, unknown;
    VECTOR(int64_t) ends; // each of them ends what a model says

    TextSteps normalizers, splitters;
    Status (*encode_word)(const Tokenizer *tokenizer, const char *bytes, size_t length,
                          TokenIds *out);
    MergePair *pairs, *pairs_by_ids; // NULL: pieces are joined by the scores of what they make
    size_t pair_count;
    bool byte_fallback;  // a character without a piece becomes its bytes, else the unknown token
    bool fuse_unknown;   // neighbouring unknown tokens become one
    bool marks_begin;    // in no piece a mark follows another character
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
    struct TokenTrie *trie;  // NULL until it is asked for
};

Tokenizer *tokenizer_new(void);
// Fills by_text, the specials and byte_ids from the pieces.
void tokenizer_index(Tokenizer *tokenizer);
void tokenizer_push_id(TokenIds *out, int64_t id);
// Fails when the user has asked to stop; every few thousand of a count that grows by one.
static inline Status tokenizer_go_on(size_t count) {
    bool stop = count % 4096 == 0 && device_is_interrupted();
    return stop ? fail(STATUS_INTERRUPT, "interrupted") : STATUS_OK;
}
const Piece *tokenizer_find(const Tokenizer *tokenizer, const char *bytes, size_t length);
// Whether WordPiece's piece stands in files as it is: special ones, and those in brackets.
bool tokenizer_is_plain(const Piece *piece);
int tokenizer_byte_value(const Piece *piece); // of "<0x41>"; -1 when it is none

// tokenizer_word.c: the models.
Status tokenizer_encode_merging(const Tokenizer *tokenizer, const char *bytes, size_t length,
                                TokenIds *out);
Status tokenizer_encode_longest(const Tokenizer *tokenizer, const char *bytes, size_t length,
                                TokenIds *out);
Status tokenizer_encode_likeliest(const Tokenizer *tokenizer, const char *bytes, size_t length,
                                  TokenIds *out);

// tokenizer_special.c: special tokens.
void tokenizer_index_specials(Tokenizer *tokenizer);
void tokenizer_free_specials(Tokenizer *tokenizer);
// The special token that begins at a place of a text; NULL when there is none.
const Piece *tokenizer_special_at(const Tokenizer *tokenizer, const char *text, size_t length,
                                  size_t at);
// Where the blanks before a place begin, from `low` on, and where those after it end.
size_t tokenizer_blanks_begin(const char *text, size_t low, size_t at);
size_t tokenizer_blanks_end(const char *text, size_t length, size_t at);
// Adds an id to those that end what a model says; -1 is none.
void tokenizer_add_end(Tokenizer *tokenizer, int64_t id);
// Adds the pieces that are called as models call their ends.
void tokenizer_find_ends(Tokenizer *tokenizer);

// tokenizer_steps.c: the steps. `splitting` decides what becomes of the matches of a pattern.
typedef enum Splitting {
    SPLIT_ISOLATED,
    SPLIT_REMOVED,
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT,
    SPLIT_CONTIGUOUS
} Splitting;
#define STEP_PUNCTUATION "[\\p{P}$+<=>^`|~]" // of BERT: signs of ASCII count
// When a space is put before the words.
typedef enum PrefixScheme { PREFIX_NEVER, PREFIX_FIRST, PREFIX_ALWAYS } PrefixScheme;

// Puts in place of each word what `change` appends for it, which ends its words itself.
typedef Status (*WordChange)(const TextStep *step, TextWord word, void *context, Words *out);
Status words_change(Words *words, const TextStep *step, WordChange change, void *context);

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
Status step_precompiled(const TextStep *step, Words *words); // content: SentencePiece's map
Status step_take_map(TextStep *step, const char *bytes, size_t length) MUST_USE;
Status step_compile(TextStep *step, const char *pattern, size_t length) MUST_USE;
void step_release(TextStep *step);

// What GGUF has no key for, under keys of tl's own: "first", when only the first text after a
// special token gets a space in front; and what special tokens do to their surroundings.
#define TOKENIZER_KEY_PREFIX "tokenizer.tl.prefix"
#define TOKENIZER_KEY_EDGES "tokenizer.tl.edges"

// tokenizer_setup.c: what readers of files build tokenizers of.
char *tokenizer_copy(const char *text);
void tokenizer_push_step(TextSteps *steps, TextStep step);
Status tokenizer_push_split(TextSteps *steps, const char *pattern, Splitting splitting,
                            bool invert) MUST_USE;
// BERT's normalizers and splitters: of a vocabulary with capital letters, or of one for which they
// become small and lose their accents.
Status tokenizer_push_bert(Tokenizer *tokenizer, bool capitals) MUST_USE;
// Whether each capital letter is a piece.
bool tokenizer_has_capitals(const Tokenizer *tokenizer);
// Makes room for the pairs of pieces that BPE may join, then takes them, first ones first.
void tokenizer_begin_pairs(Tokenizer *tokenizer, size_t count);
bool tokenizer_add_pair(Tokenizer *tokenizer, size_t index, const Piece *left, const Piece *right);
// What Unigram follows from its pieces' scores.
void tokenizer_prepare_unigram(Tokenizer *tokenizer);

// tokenizer_patterns.c: how texts are cut before byte-level BPE, by name.
enum {
    PRE_WHOLE_WORDS = 1, // words that are pieces are not cut
    PRE_BEGINS = 2,      // texts begin with the token for it, unless the file says otherwise
    PRE_SURROUNDS = 4,   // texts begin and end with theirs, likewise
    PRE_COMPOSES = 8     // characters are composed first (NFC)
};
typedef struct Pretokenizer {
    const char *names;       // parted by blanks
    const char *patterns[7]; // up to a NULL; matches and what is between them are words
    unsigned options;        // PRE_...
} Pretokenizer;
extern const char tokenizer_pattern_words[];                            // GPT-2's
const Pretokenizer *pretokenizer_find(const char *name, size_t length); // NULL when unknown
// The one that these steps are, NULL when none is.
const Pretokenizer *pretokenizer_of(const Tokenizer *tokenizer);

#endif
