#include "model/token_trie.h"

#include <stdlib.h>
#include <string.h>

#include "model/tokenizer_internal.h"

typedef struct Entry {
    const char *bytes;
    size_t length;
    int64_t id;
} Entry;

static int compare(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    size_t shorter = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->bytes, y->bytes, shorter);
    if (order != 0) return order;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static void read_bytes(const Tokenizer *tokenizer, TokenTrie *trie) {
    Text all = {0};
    for (int64_t id = 0; id < trie->size; id++) {
        trie->starts[id] = all.length;
        if (tokenizer_is_end(tokenizer, id) || id == tokenizer_bos(tokenizer))
            trie->ends[trie->end_count++] = id;
        else
            tokenizer_token_bytes(tokenizer, id, &all);
    }
    ASSERT((int64_t)trie->end_count <= trie->size);
    trie->starts[trie->size] = all.length;
    trie->bytes = text_take(&all);
}

// Tokens without bytes are in no node.
static size_t sort_entries(const TokenTrie *trie, Entry *entries) {
    size_t count = 0;
    for (int64_t id = 0; id < trie->size; id++) {
        size_t length = trie->starts[id + 1] - trie->starts[id];
        if (length > 0) entries[count++] = (Entry){trie->bytes + trie->starts[id], length, id};
    }
    qsort(entries, count, sizeof *entries, compare);
    return count;
}

typedef struct Builder {
    TokenTrie *trie;
    VECTOR(TrieNode) nodes;
    VECTOR(uint32_t) open; // the nodes on the way to the last entry, by depth
} Builder;

static void close_nodes(Builder *builder, size_t depth) {
    while (builder->open.count > depth) {
        uint32_t node = builder->open.items[--builder->open.count];
        ASSERT(node < builder->nodes.count);
        builder->nodes.items[node].next = (uint32_t)builder->nodes.count;
    }
}

static void open_node(Builder *builder, uint8_t byte, size_t tokens) {
    VECTOR_PUSH(&builder->open, (uint32_t)builder->nodes.count);
    VECTOR_PUSH(&builder->nodes, ((TrieNode){.tokens = (uint32_t)tokens, .byte = byte}));
}

static size_t common_prefix(const Entry *a, const Entry *b) {
    size_t shared = 0;
    while (shared < a->length && shared < b->length && a->bytes[shared] == b->bytes[shared])
        shared++;
    return shared;
}

static void build(TokenTrie *trie, const Entry *entries, size_t count) {
    Builder builder = {.trie = trie};
    open_node(&builder, 0, 0);
    for (size_t i = 0; i < count; i++) {
        size_t shared = i > 0 ? common_prefix(&entries[i - 1], &entries[i]) : 0;
        close_nodes(&builder, shared + 1);
        ASSERT(builder.open.count == shared + 1); // the way to what both share
        for (size_t at = shared; at < entries[i].length; at++)
            open_node(&builder, (uint8_t)entries[i].bytes[at], i);
        trie->tokens[i] = entries[i].id;
    }
    close_nodes(&builder, 0);
    ASSERT(builder.open.count == 0);
    trie->node_count = builder.nodes.count;
    VECTOR_PUSH(&builder.nodes, ((TrieNode){.tokens = (uint32_t)count}));
    trie->nodes = builder.nodes.items;
    VECTOR_FREE(&builder.open);
}

const TokenTrie *tokenizer_trie(Tokenizer *tokenizer) {
    if (tokenizer->trie) return tokenizer->trie;
    TokenTrie *trie = memory_allocate_zeroed(1, sizeof *trie);
    trie->size = tokenizer_size(tokenizer);
    size_t size = (size_t)trie->size;
    trie->starts = memory_allocate((size + 1) * sizeof *trie->starts);
    trie->ends = memory_allocate((size + 1) * sizeof *trie->ends);
    trie->tokens = memory_allocate((size + 1) * sizeof *trie->tokens);
    read_bytes(tokenizer, trie);
    SCOPED_MEMORY Entry *entries = memory_allocate((size + 1) * sizeof *entries);
    build(trie, entries, sort_entries(trie, entries));
    return tokenizer->trie = trie;
}

void token_trie_free(TokenTrie *trie) {
    if (!trie) return;
    free(trie->nodes);
    free(trie->tokens);
    free(trie->ends);
    free(trie->bytes);
    free(trie->starts);
    free(trie);
}
