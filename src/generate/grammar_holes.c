// The holes of a grammar: sorted texts, and the beginnings of texts that places stand for. A
// beginning is the range of the texts that go on from it; ranges are found anew when texts change.
#include <string.h>
#include <uthash.h>

#include "base/memory.h"
#include "generate/grammar_internal.h"

typedef struct FillText {
    char *bytes;
    size_t length;
} FillText;

typedef VECTOR(FillText) FillTexts;

typedef struct Begun {
    struct {
        uint32_t parent;
        uint8_t byte;
    } key;
    uint32_t number, hole;
    size_t depth;
    size_t low, high; // of the hole's texts
    UT_hash_handle hh;
} Begun;

struct Holes {
    FillTexts *texts; // of each hole, in order, each once
    uint32_t count;
    uint64_t version;
    bool filled;
    VECTOR(Begun *) begun; // first those without bytes
    Begun *by_key;
};

static void texts_free(FillTexts *texts) {
    for (size_t i = 0; i < texts->count; i++) free(texts->items[i].bytes);
    VECTOR_FREE(texts);
}

static Begun *begun_new(Holes *holes, uint32_t hole) {
    ASSERT(hole < holes->count);
    Begun *begun = memory_allocate_zeroed(1, sizeof *begun);
    begun->number = (uint32_t)holes->begun.count;
    begun->hole = hole;
    VECTOR_PUSH(&holes->begun, begun);
    return begun;
}

Holes *holes_new(const Filler *filler) {
    Holes *holes = memory_allocate_zeroed(1, sizeof *holes);
    holes->count = filler->count;
    holes->texts = memory_allocate_zeroed(filler->count + 1, sizeof *holes->texts);
    for (uint32_t i = 0; i < filler->count; i++) begun_new(holes, i);
    return holes;
}

void holes_forget(Holes *holes) {
    HASH_CLEAR(hh, holes->by_key);
    while (holes->begun.count > holes->count) free(holes->begun.items[--holes->begun.count]);
}

void holes_free(Holes *holes) {
    if (!holes) return;
    holes_forget(holes);
    for (size_t i = 0; i < holes->begun.count; i++) free(holes->begun.items[i]);
    VECTOR_FREE(&holes->begun);
    for (uint32_t i = 0; i < holes->count; i++) texts_free(&holes->texts[i]);
    free(holes->texts);
    free(holes);
}

// --- texts

static int compare_texts(const void *a, const void *b) {
    const FillText *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->length < y->length ? x->length : y->length);
    return order ? order : x->length < y->length ? -1 : x->length > y->length;
}

static void add_text(void *context, const char *bytes, size_t length) {
    FillTexts *texts = context;
    FillText text = {memory_copy_string(bytes, length), length};
    VECTOR_PUSH(texts, text);
}

static void texts_sort(FillTexts *texts) {
    size_t kept = 0;
    if (texts->count > 1) qsort(texts->items, texts->count, sizeof(FillText), compare_texts);
    for (size_t i = 0; i < texts->count; i++) {
        if (kept > 0 && compare_texts(&texts->items[kept - 1], &texts->items[i]) == 0)
            free(texts->items[i].bytes);
        else
            texts->items[kept++] = texts->items[i];
    }
    texts->count = kept;
}

// --- beginnings

// The first text from low to high whose byte at the depth is not below this one; those that end
// there come first.
static size_t first_from(const FillTexts *texts, const Begun *begun, int byte) {
    ASSERT(begun->low <= begun->high && begun->high <= texts->count);
    size_t low = begun->low, high = begun->high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const FillText *text = &texts->items[middle];
        int here = text->length > begun->depth ? (uint8_t)text->bytes[begun->depth] : -1;
        if (here < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_range(const Holes *holes, Begun *begun) {
    ASSERT(begun->hole < holes->count);
    const FillTexts *texts = &holes->texts[begun->hole];
    if (begun->depth == 0) {
        begun->low = 0;
        begun->high = texts->count;
        return;
    }
    const Begun *parent = holes->begun.items[begun->key.parent];
    begun->low = first_from(texts, parent, begun->key.byte);
    begun->high = first_from(texts, parent, begun->key.byte + 1);
}

Status holes_refresh(Holes *holes, Filler *filler, bool *changed) {
    uint64_t version = filler->type->version(filler);
    *changed = !holes->filled || version != holes->version;
    if (!*changed) return STATUS_OK;
    for (uint32_t i = 0; i < holes->count; i++) {
        FillTexts texts = {0};
        Status status = filler->type->fill(filler, i, add_text, &texts);
        if (status != STATUS_OK) {
            texts_free(&texts);
            return status;
        }
        texts_sort(&texts);
        texts_free(&holes->texts[i]);
        holes->texts[i] = texts;
    }
    holes->filled = true;
    holes->version = version;
    for (size_t i = 0; i < holes->begun.count; i++) find_range(holes, holes->begun.items[i]);
    return STATUS_OK;
}

uint32_t holes_begin(uint32_t hole) {
    return PLACE_BEGUN + hole;
}

static Begun *begun_at(const Holes *holes, uint32_t place) {
    return holes->begun.items[place - PLACE_BEGUN];
}

uint32_t holes_step(Holes *holes, uint32_t place, uint8_t byte) {
    ASSERT(place >= PLACE_BEGUN);
    const Begun *parent = begun_at(holes, place);
    Begun *next, key;
    if (parent->low == parent->high) return 0;
    memset(&key, 0, sizeof key);
    key.key.parent = parent->number;
    key.key.byte = byte;
    HASH_FIND(hh, holes->by_key, &key.key, sizeof key.key, next);
    if (!next) {
        Begun made = {.hole = parent->hole, .depth = parent->depth + 1};
        memcpy(&made.key, &key.key, sizeof key.key);
        find_range(holes, &made);
        if (made.low == made.high) return 0;
        next = begun_new(holes, parent->hole);
        made.number = next->number;
        *next = made;
        memcpy(&next->key, &key.key, sizeof key.key);
        HASH_ADD(hh, holes->by_key, key, sizeof next->key, next);
    }
    return next->low < next->high ? PLACE_BEGUN + next->number : 0;
}

bool holes_complete(const Holes *holes, uint32_t place) {
    const Begun *begun = begun_at(holes, place);
    const FillTexts *texts = &holes->texts[begun->hole];
    return begun->low < begun->high && texts->items[begun->low].length == begun->depth;
}

int64_t holes_cost(const Holes *holes, uint32_t place) {
    const Begun *begun = begun_at(holes, place);
    const FillTexts *texts = &holes->texts[begun->hole];
    int64_t least = holes->filled ? CONSTRAINT_NEVER : 1;
    for (size_t i = begun->low; i < begun->high; i++) {
        int64_t rest = (int64_t)(texts->items[i].length - begun->depth);
        if (rest > 0 && rest < least) least = rest;
    }
    return least;
}
