// All rows of the .def files in one table, found by name or alias. Built once, at the first use.
#include "catalog/catalog.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "catalog/signature.h"

// What the .def files say; the rows are made of it when they are first asked for.
static const struct {
    RowKind kind;
    const char *section, *signature, *doc;
} texts[] = {
#define OP_MAP(id, map, rule, precision, signature, section, doc) {ROW_OP, section, signature, doc},
#define OP_RUN(id, outputs, shape, gradient, weights, precision, signature, section, doc)          \
    {ROW_OP, section, signature, doc},
#define OP_OVERLOAD(id, name, outputs, shape, gradient, weights, precision, signature, section,    \
                    doc)                                                                           \
    {ROW_OP, section, signature, doc},
#include "catalog/ops.def"
#define FUNCTION(id, signature, section, doc) {ROW_FUNCTION, section, signature, doc},
#include "catalog/functions.def"
#undef FUNCTION
};
enum { ROW_COUNT = sizeof texts / sizeof *texts };
static Builtin rows[ROW_COUNT];

static const OlderSpelling aliases[] = {
#define ALIAS(old, name) {#old, #name},
#include "catalog/compat.def"
};
enum { ALIAS_COUNT = sizeof aliases / sizeof *aliases };
static const OlderSpelling parameter_aliases[] = {
#define PARAMETER(old, name) {#old, #name},
#include "catalog/compat.def"
};
enum { PARAMETER_ALIAS_COUNT = sizeof parameter_aliases / sizeof *parameter_aliases };

// An open-addressed table over names and aliases; at most half full.
typedef struct Slot {
    const char *name; // NULL: empty
    Builtin *row;
} Slot;
enum { SLOT_COUNT = 4096 };
_Static_assert((size_t)ROW_COUNT + (size_t)ALIAS_COUNT <= (size_t)SLOT_COUNT / 2,
               "the name table is at most half full");
static Slot slots[SLOT_COUNT];

static Slot *find_slot(const char *name, size_t length) {
    uint32_t hash = 2166136261u; // FNV-1a
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    for (size_t i = hash % SLOT_COUNT;; i = (i + 1) % SLOT_COUNT) {
        Slot *slot = &slots[i];
        if (!slot->name) return slot;
        if (strlen(slot->name) == length && memcmp(slot->name, name, length) == 0) return slot;
    }
}

static void add_row(Builtin *row) {
    Slot *slot = find_slot(row->signature.name, strlen(row->signature.name));
    if (!slot->name) {
        *slot = (Slot){row->signature.name, row};
        return;
    }
    Builtin *last = slot->row;
    while (last->next_overload) last = last->next_overload;
    last->next_overload = row;
}

// A row or an alias that is wrong is a mistake in the .def files: the tests meet it first.
static void build(void) {
    int ids[] = {[ROW_OP] = 0, [ROW_FUNCTION] = 0};
    for (size_t i = 0; i < ROW_COUNT; i++) {
        rows[i] = (Builtin){.kind = texts[i].kind,
                            .id = ids[texts[i].kind]++,
                            .section = texts[i].section,
                            .signature_text = texts[i].signature,
                            .doc = texts[i].doc};
        ASSERT(signature_parse(rows[i].signature_text, &rows[i].signature) == STATUS_OK);
        add_row(&rows[i]);
    }
    for (size_t i = 0; i < ALIAS_COUNT; i++) {
        Slot *target = find_slot(aliases[i].name, strlen(aliases[i].name));
        Slot *slot = find_slot(aliases[i].old, strlen(aliases[i].old));
        ASSERT(target->name != NULL && slot->name == NULL);
        *slot = (Slot){aliases[i].old, target->row};
    }
}

static void ensure_built(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, build);
}

const Builtin *catalog_find(const char *name, size_t length) {
    static const char older[] = "cndl_";
    enum { OLDER = sizeof older - 1 };
    ensure_built();
    const Slot *slot = find_slot(name, length);
    if (!slot->name && length > OLDER && memcmp(name, older, OLDER) == 0)
        slot = find_slot(name + OLDER, length - OLDER);
    return slot->name ? slot->row : NULL;
}

bool catalog_lacks_shape(const Builtin *row, size_t count) {
    if (count >= (size_t)row->signature.count) return false;
    const Param *next = &row->signature.params[count];
    return next->kind == PARAM_SHAPE && next->default_kind == DEFAULT_ABSENT;
}

size_t catalog_count(void) {
    return ROW_COUNT;
}

const Builtin *catalog_get(size_t index) {
    ensure_built();
    return index < ROW_COUNT ? &rows[index] : NULL;
}

static int find_parameter(const Signature *signature, const char *name) {
    for (int i = 0; i < signature->count; i++)
        if (signature->params[i].name[0] == name[0] && strcmp(signature->params[i].name, name) == 0)
            return i;
    return -1;
}

int catalog_parameter(const Signature *signature, const char *name) {
    int index = find_parameter(signature, name);
    for (size_t i = 0; index < 0 && i < PARAMETER_ALIAS_COUNT; i++)
        if (strcmp(parameter_aliases[i].old, name) == 0)
            index = find_parameter(signature, parameter_aliases[i].name);
    return index;
}

int catalog_sizes_parameter(const Signature *signature) {
    for (int i = 0; i < signature->count; i++) {
        const Param *param = &signature->params[i];
        if (!param->rest && (param->kind == PARAM_SHAPE || param->kind == PARAM_INTS)) return i;
    }
    return -1;
}

const char *catalog_method_name(const char *row, const char *kind) {
    ASSERT(row[0] != '\0' && kind[0] != '\0');
    size_t length = strlen(kind);
    if (strncmp(row, kind, length) == 0 && row[length] == '.') return row + length + 1;
    return strpbrk(row, ".:") ? NULL : row;
}

void catalog_aliases(const Builtin *row, Text *out) {
    const char *separator = "";
    for (size_t i = 0; i < ALIAS_COUNT; i++) {
        if (strcmp(aliases[i].name, row->signature.name) != 0) continue;
        text_append_string(out, separator);
        text_append_string(out, aliases[i].old);
        separator = ", ";
    }
}

const OlderSpelling *catalog_older(bool parameters, size_t *count) {
    *count = parameters ? PARAMETER_ALIAS_COUNT : ALIAS_COUNT;
    return parameters ? parameter_aliases : aliases;
}

size_t catalog_names(const char **out, size_t capacity) {
    ensure_built();
    size_t count = 0;
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        if (!slots[i].name) continue;
        if (count < capacity) out[count] = slots[i].name;
        count++;
    }
    size_t constants;
    const Constant *constant = catalog_constants(&constants);
    for (size_t i = 0; i < constants; i++, count++)
        if (count < capacity) out[count] = constant[i].name;
    return count;
}
