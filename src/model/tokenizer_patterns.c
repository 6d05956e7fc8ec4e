// How texts are cut before byte-level BPE, by the names that GGUF files give it
// (tokenizer.ggml.pre). The patterns are those of the models' own tokenizer.json files.
#include <string.h>
#include <utf8proc.h>

#include "model/tokenizer_internal.h"

#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SIGNS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define BLANKS "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(before, ending)                                                                      \
    before UPPER "*" LOWER "+" ending "|" before UPPER "+" LOWER "*" ending
#define NO_LETTER "[^\\r\\n\\p{L}\\p{N}]?"
#define NO_HAN "(?:(?!\\p{Han})"
#define ASCII_SIGNS "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
#define CJK "[\xE4\xB8\x80-\xE9\xBE\xA5\xE0\xA0\x80-\xE4\xB8\x80\xEA\xB0\x80-\xED\x9F\xBF]+"
#define NO_STOPS                                                                                   \
    " ?[^(\\s|.,!?\xE2\x80\xA6\xE3\x80\x82\xEF\xBC\x8C\xE3\x80\x81\xE0\xA5\xA4\xDB\x94\xD8\x8C)]+"

const char tokenizer_pattern_words[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+"
                                       "| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
#define WORDS tokenizer_pattern_words

static const char llama3[] = ENDINGS "|" LETTERS "|\\p{N}{1,3}|" SIGNS "|" BLANKS;
static const char qwen[] = ENDINGS "|" LETTERS "|\\p{N}|" SIGNS "|" BLANKS;
static const char gpt4o[] =
    CASED(NO_LETTER, ENDINGS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS;
static const char tekken[] = CASED(NO_LETTER, "") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS;
static const char kimi[] =
    "\\p{Han}+|" NO_LETTER NO_HAN UPPER ")*" NO_HAN LOWER ")+" ENDINGS "?|" NO_LETTER NO_HAN UPPER
    ")+" NO_HAN LOWER ")*" ENDINGS "?|\\p{N}{1,3}|" SIGNS "|" BLANKS;
static const char bailing[] = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}"
                              "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
static const char seed[] = ENDINGS "|" LETTERS "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" BLANKS;
static const char deepseek3[] = ASCII_SIGNS "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
                                            "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" BLANKS;
// The letters with case of the scripts that this vocabulary was made for.
static const char deepseek_letters[] =
    "\\s?[A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}"
    "\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}"
    "\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}"
    "\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}"
    "\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}"
    "\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}"
    "\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}"
    "\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}"
    "\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}"
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}"
    "\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}"
    "\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}"
    "\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}"
    "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}]+";
static const char deepseek_signs[] = "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}"
                                     "\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+";

static const Pretokenizer rows[] = {
    {"default", {"[\\p{P}$+<=>^~|]+", WORDS, "\\p{N}+", "[0-9][0-9][0-9]"}, 0},
    {"gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum exaone4 mpt olmo "
     "jais trillion granite-docling",
     {WORDS},
     0},
    {"roberta-bpe jina-v1-en jina-v2-code", {WORDS}, PRE_SURROUNDS},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     {llama3},
     PRE_WHOLE_WORDS | PRE_BEGINS},
    {"modern-bert", {WORDS}, PRE_COMPOSES},
    {"dbrx smaug-bpe glm4 chatglm-bpe", {llama3}, 0},
    {"qwen2 deepseek-r1-qwen megrez", {qwen}, PRE_COMPOSES},
    {"stablelm2 hunyuan grok-2", {qwen}, 0},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b", {"\\p{N}", WORDS}, 0},
    {"falcon", {"[\\p{P}$+<=>^~|`]+", WORDS, "[0-9][0-9][0-9]"}, 0},
    {"deepseek-llm", {"[\\r\\n]", deepseek_letters, deepseek_signs, "\\s+$", CJK, "\\p{N}+"}, 0},
    {"deepseek-coder", {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK, "\\p{N}"}, 0},
    {"deepseek-v3 hunyuan-dense",
     {"\\p{N}{1,3}", "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+", deepseek3},
     0},
    {"tekken", {tekken}, PRE_WHOLE_WORDS | PRE_BEGINS},
    {"gpt-4o llama4 minimax-m2", {gpt4o}, 0},
    {"kimi-k2", {kimi}, 0},
    {"bailingmoe bailingmoe2 llada-moe", {bailing}, 0},
    {"seed-coder", {seed}, 0},
    {"poro-chat bloom gpt3-finnish", {NO_STOPS}, 0},
    {"viking", {NO_STOPS, "\\p{N}"}, 0},
};

// Whether a name is one of several that blanks part.
static bool lists(const char *names, const char *name, size_t length) {
    for (const char *at = names; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, name, length) == 0 && (at[length] == ' ' || at[length] == '\0'))
            return length > 0;
    }
    return false;
}

const Pretokenizer *pretokenizer_find(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (lists(rows[i].names, name, length)) return &rows[i];
    return NULL;
}

// Splitting at each of its patterns, then bytes as letters.
static bool cuts_so(const Pretokenizer *row, const TextSteps *steps) {
    size_t count = 0;
    for (; row->patterns[count]; count++) {
        const TextStep *step = count < steps->count ? &steps->items[count] : NULL;
        if (!step || step->apply != step_split || step->option != SPLIT_ISOLATED || step->flag ||
            strcmp(step->pattern, row->patterns[count]) != 0)
            return false;
    }
    return steps->count == count + 1 && steps->items[count].apply == step_bytes;
}

const Pretokenizer *pretokenizer_of(const Tokenizer *tokenizer) {
    const TextSteps *changes = &tokenizer->normalizers;
    bool composes = changes->count == 1 && changes->items[0].apply == step_unicode_form &&
                    changes->items[0].option == (UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (changes->count > 0 && !composes) return NULL;
    unsigned wanted =
        (composes ? PRE_COMPOSES : 0) | (tokenizer->whole_words ? PRE_WHOLE_WORDS : 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((rows[i].options & (PRE_COMPOSES | PRE_WHOLE_WORDS)) == wanted &&
            cuts_so(&rows[i], &tokenizer->splitters))
            return &rows[i];
    return NULL;
}
