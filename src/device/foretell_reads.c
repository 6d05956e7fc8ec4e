// Numbers that only a run knows: what is guessed for them where they decide something, and the
// places where that is.
#include "device/foretelling.h"
#include "device/statistics.h"

enum {
    // The other guess is made at every so many readings of a place that holds, which may keep a
    // loop going for ever, and after so many of one that does not, which keeps only one without
    // another end.
    HOLDING_READS_MAX = 11,
    FAILING_READS_MAX = 10000,
};

SureForecast foretelling_sure(const Foretelling *now) {
    const Device *device = device_default_opened();
    Forecast found = {0};
    if (device) foretell_device_report(device, &found);
    return (SureForecast){found.peak_bytes, now->tensor_bytes, found.peak_at, now->tensor_at,
                          now->hopeless};
}

static LooseRead *loose_at(Foretelling *now, SourcePos at) {
    for (size_t i = 0; i < now->loose.count; i++)
        if (now->loose.items[i].at == at) return &now->loose.items[i];
    if (now->loose.count == 0) now->sure = foretelling_sure(now);
    LooseRead read = {.at = at};
    VECTOR_PUSH(&now->loose, read);
    return &now->loose.items[now->loose.count - 1];
}

void foretelling_note_open(Foretelling *now, SourcePos at) {
    loose_at(now, at)->open = true;
    now->reads++;
}

static bool holds_at(const ForetellPlan *plan, SourcePos at) {
    bool holds = plan->guess == FORETELL_GUESS_TRUE;
    for (size_t i = 0; i < plan->turned_count; i++)
        if (plan->turned[i] == at) return !holds;
    return holds;
}

// Whether the pass takes the other one of two values here.
static bool turns_off(ForetellPath *path) {
    if (!path) return false;
    size_t i = path->made++;
    if (i >= FORETELL_CHOICES_MAX) return false;
    if (i >= path->given) path->turned[i] = false;
    return path->turned[i];
}

bool foretell_path_next(ForetellPath *path) {
    ASSERT(path->given <= FORETELL_CHOICES_MAX);
    if (path->made > FORETELL_CHOICES_MAX) return false;
    size_t last = path->made;
    while (last > 0 && path->turned[last - 1]) last--;
    if (last == 0) return false;
    path->turned[last - 1] = true;
    path->given = last;
    return true;
}

bool foretelling_guess(Foretelling *now, SourcePos at, bool choice) {
    LooseRead *read = loose_at(now, at);
    now->reads++;
    read->open |= !choice;
    bool holds = holds_at(now->plan, read->at);
    bool turned = holds ? read->count % HOLDING_READS_MAX == HOLDING_READS_MAX - 1
                        : read->count >= FAILING_READS_MAX;
    read->count++;
    if (choice) turned ^= turns_off(now->plan->path);
    return turned != holds;
}

bool foretell_choose(SourcePos at) {
    Foretelling *now = foretelling_current();
    now->reads++;
    return !now->ignores_reads && foretelling_guess(now, at, true);
}

int64_t foretell_look(SourcePos at) {
    Foretelling *now = foretelling_current();
    now->reads++;
    return !now->ignores_reads && !foretelling_guess(now, at, false);
}

bool foretell_ignore_reads(bool ignore) {
    Foretelling *now = foretelling_current();
    if (!now) return false;
    bool before = now->ignores_reads;
    now->ignores_reads = ignore;
    return before;
}

bool foretell_ignore_checks(void) {
    return foretell_ignore_reads(!foretell_attempts());
}

void foretell_attempt(int more) {
    Foretelling *now = foretelling_current();
    ASSERT(now && now->attempts + more >= 0);
    now->attempts += more;
}

bool foretell_attempts(void) {
    return foretelling_current() && foretelling_current()->attempts > 0;
}

uint64_t foretell_reads(void) {
    return foretelling_current() ? foretelling_current()->reads : 0;
}

bool foretell_has_guessed(void) {
    return foretelling_current() &&
           (foretelling_current()->reads > 0 || foretelling_current()->rounded_read);
}

void foretell_text_shown(void) {
    if (foretelling_current()) foretelling_current()->reads++;
}

void foretell_unknown(void) {
    Foretelling *now = foretelling_current();
    if (now && now->ignores_reads) now->reads++;
    if (now && !now->ignores_reads) foretelling_note_open(now, origin_current.at);
}

void foretell_at_most(SourcePos at) {
    loose_at(foretelling_current(), at);
    foretelling_current()->reads++;
}

bool foretell_most(const Buffer *source, int64_t most, int64_t *count) {
    if (foretell_knows(source)) return false;
    foretell_at_most(origin_current.at);
    *count = most;
    return true;
}

void foretell_bound(Buffer *buffer) {
    ASSERT(foretelling() && buffer->device->foretold);
    Foretold *memory = buffer->handle;
    memory->bounded = true;
    foretelling_current()->bounded = true;
}

bool foretell_is_bounded(const Buffer *buffer) {
    return buffer && buffer->device->foretold && ((const Foretold *)buffer->handle)->bounded;
}

void foretell_shape_read(const Buffer *buffer) {
    if (foretell_is_bounded(buffer))
        foretelling_note_open(foretelling_current(), origin_current.at);
}

void foretell_shape_checked(const Buffer *buffer) {
    if (foretell_is_bounded(buffer) && foretell_attempts())
        foretelling_note_open(foretelling_current(), origin_current.at);
}

bool foretell_knows(const Buffer *buffer) {
    if (!buffer->device->foretold) return true;
    const Foretold *memory = buffer->handle;
    return memory->known;
}

void foretell_forget(Buffer *buffer) {
    if (!buffer->device->foretold) return;
    Foretold *memory = buffer->handle;
    memory->known = false;
}
