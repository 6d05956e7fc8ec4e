// A vocabulary by its bytes: a trie of what tokens stand for, laid out in the order of a walk, so
// that a mask over all tokens is one pass that leaves out what cannot be.
#ifndef MODEL_TOKEN_TRIE_H
#define MODEL_TOKEN_TRIE_H

#include "model/tokenizer.h"

typedef struct TrieNode {
    uint32_t next;   // the node after this one's descendants
    uint32_t tokens; // where its tokens begin in `tokens`; they end where the next node's begin
    uint8_t byte;    // that leads here
} TrieNode;

typedef struct TokenTrie {
    TrieNode *nodes; // 0 is the root; a node's first child is the next node; one more at the end
    size_t node_count;
    int64_t *tokens; // by node
    int64_t *ends;   // tokens that end a text
    size_t end_count;
    int64_t size;   // of the vocabulary
    char *bytes;    // of all tokens
    size_t *starts; // where each token's bytes begin; one more at the end
} TokenTrie;

// Made at the first call; borrowed from the tokenizer. Special tokens stand for no bytes.
const TokenTrie *tokenizer_trie(Tokenizer *tokenizer);
void token_trie_free(TokenTrie *trie); // NULL is allowed

static inline size_t trie_mask_words(const TokenTrie *trie) {
    return ((size_t)trie->size + 63) / 64;
}

#endif
