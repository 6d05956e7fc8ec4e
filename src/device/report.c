// Words about memory: the report, the leak check, the refusal, the debugging lines. Knows the
// pool's accounts; decides nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/runtime.h"
#include "base/source.h"
#include "device/account.h"
#include "device/foretell.h"
#include "device/pool.h"
#include "device/report.h"
#include "device/statistics.h"

enum { HOLDERS_SHOWN = 5, LEAKS_SHOWN = 20 };

static double megabytes(uint64_t bytes) {
    return (double)bytes / 0x1p20;
}

static const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

// --- places --------------------------------------------------------------------------------------

static void describe_place(Text *out, Origin origin) {
    SourcePlace place = source_find(origin.at);
    if (place.file)
        text_format(out, "%s:%d:%d", place.file->name, place.line, place.column);
    else
        text_append_string(out, "an unknown place");
}

void pool_set_origin_describer(void (*describe)(Text *out, Origin origin)) {
    runtime_current->devices->describe_origin = describe;
}

static void describe_origin(Text *out, Origin origin) {
    void (*describe)(Text * out, Origin origin) = runtime_current->devices->describe_origin;
    (describe ? describe : describe_place)(out, origin);
}

static void describe_label(Text *out, const BufferLabel *label, size_t bytes) {
    if (label->rank < 0) {
        text_format(out, "%zu bytes", bytes);
        return;
    }
    text_append_string(out, dtype_name(label->dtype));
    text_append_char(out, '[');
    for (int d = 0; d < label->rank; d++)
        text_format(out, "%s%lld", d > 0 ? ", " : "", (long long)label->dims[d]);
    text_append_char(out, ']');
}

// --- holders -------------------------------------------------------------------------------------

typedef struct Holder {
    SourcePos at;
    uint64_t bytes;
} Holder;

typedef struct Holders {
    Holder *items; // largest first
    size_t count;
} Holders;

static int compare_places(const void *x, const void *y) {
    SourcePos a = ((const Holder *)x)->at, b = ((const Holder *)y)->at;
    return (a > b) - (a < b);
}

static int compare_bytes(const void *x, const void *y) {
    const Holder *a = x, *b = y;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return compare_places(x, y);
}

static bool same_line(SourcePos a, SourcePos b) {
    SourcePlace place_a = source_find(a), place_b = source_find(b);
    return place_a.file == place_b.file && place_a.line == place_b.line;
}

// Who holds how much: at the peak by expression, or now by line.
static Holders collect_holders(const Pool *pool, bool at_peak) {
    const PoolAccounts *accounts = &pool->accounts;
    Holders holders = {memory_allocate_zeroed(accounts->used + 1, sizeof(Holder)), 0};
    for (size_t i = 0; i < accounts->slot_count; i++) {
        const PoolOrigin *account = accounts->slots[i];
        if (!account) continue;
        uint64_t bytes = at_peak ? account_peak_bytes(accounts, account) : account->live_bytes;
        if (bytes > 0) holders.items[holders.count++] = (Holder){account->origin.at, bytes};
    }
    ASSERT(holders.count <= accounts->used);
    qsort(holders.items, holders.count, sizeof(Holder), compare_places);
    size_t kept = 0;
    for (size_t i = 1; i < holders.count; i++) {
        Holder *last = &holders.items[kept], *next = &holders.items[i];
        if (last->at == next->at || (!at_peak && same_line(last->at, next->at)))
            last->bytes += next->bytes;
        else
            holders.items[++kept] = *next;
    }
    if (holders.count > 0) holders.count = kept + 1;
    qsort(holders.items, holders.count, sizeof(Holder), compare_bytes);
    return holders;
}

// --- refusal -------------------------------------------------------------------------------------

static void describe_line(Text *out, SourcePos position) {
    SourcePlace place = source_find(position);
    if (place.file)
        text_format(out, "%s:%d", place.file->name, place.line);
    else
        text_append_string(out, "an unknown place");
}

static void describe_holders(const Pool *pool, Text *out) {
    Holders holders = collect_holders(pool, false);
    if (holders.count > 0) text_append_string(out, "the most is held by ");
    for (size_t i = 0; i < holders.count && i < HOLDERS_SHOWN; i++) {
        if (i > 0) text_append_string(out, ", ");
        describe_line(out, holders.items[i].at);
        text_format(out, " (%.2f MB)", megabytes(holders.items[i].bytes));
    }
    if (holders.count > 0) text_append_string(out, "; ");
    text_append_string(out, "assign none to a variable that is no longer needed, or make smaller "
                            "tensors");
    free(holders.items);
}

Status report_refusal(const Pool *pool, size_t bytes, const BufferLabel *label) {
    static const BufferLabel no_label = {.rank = -1};
    const Device *device = pool->device;
    SCOPED_TEXT(what);
    SCOPED_TEXT(help);
    SCOPED_TEXT(limit);
    describe_label(&what, label ? label : &no_label, bytes);
    describe_holders(pool, &help);
    if (device->memory_limit > 0 && device->memory_limit == pool->settings.limit_bytes)
        text_format(&limit, "the limit is %.2f MB", megabytes(device->memory_limit));
    else if (device->memory_limit > 0)
        text_format(&limit, "the device has %.2f MB", megabytes(device->memory_limit));
    else
        text_append_string(&limit, "the device states no limit");
    if (pool->limit < device->memory_limit)
        text_format(&limit, ", %.2f MB of it for this program", megabytes(pool->limit));
    fail(STATUS_MEMORY,
         "%s has no memory for %s: %.2f MB requested, %.2f MB live, %.2f MB cached, %s",
         device->name, text_get(&what), megabytes(bytes), megabytes(pool->live_capacity),
         megabytes(pool->statistics.cached_bytes), text_get(&limit));
    return fail_help("%s", text_get(&help));
}

// --- debugging lines -----------------------------------------------------------------------------

void pool_debug(const Pool *pool, const char *event, const Buffer *buffer) {
    SCOPED_TEXT(line);
    text_format(&line, "memory: %-8s %zu bytes, class %zu, ", event, buffer->bytes,
                buffer->capacity);
    describe_place(&line, buffer->origin);
    const PoolStatistics *statistics = &pool->statistics;
    text_format(&line, ", live %llu in %llu buffer%s, cached %llu in %llu\n",
                (unsigned long long)statistics->live_bytes,
                (unsigned long long)statistics->live_buffers, plural(statistics->live_buffers),
                (unsigned long long)statistics->cached_bytes,
                (unsigned long long)statistics->cached_buffers);
    fputs(text_get(&line), output_errors());
}

// --- the report ----------------------------------------------------------------------------------

// Pads what was appended since `start` to `columns`; places are plain enough to count as bytes.
static void pad_from(Text *out, size_t start, size_t columns) {
    size_t written = out->length - start;
    if (written < columns) text_append_repeated(out, ' ', columns - written);
}

static void append_holders(const Pool *pool, Text *out) {
    Holders holders = collect_holders(pool, true);
    size_t shown = holders.count < HOLDERS_SHOWN ? holders.count : HOLDERS_SHOWN, widest = 0;
    for (size_t i = 0; i < shown; i++) {
        SCOPED_TEXT(place);
        describe_place(&place, (Origin){holders.items[i].at, 0});
        if (place.length > widest) widest = place.length;
    }
    if (shown > 0) text_append_string(out, "held at the peak:\n");
    for (size_t i = 0; i < shown; i++) {
        const Holder *holder = &holders.items[i];
        text_format(out, "%9.2f MB%7.1f %%   ", megabytes(holder->bytes),
                    100.0 * (double)holder->bytes / (double)pool->statistics.peak_bytes);
        size_t start = out->length;
        describe_place(out, (Origin){holder->at, 0});
        if (source_find(holder->at).file) {
            pad_from(out, start, widest + 4);
            source_append_expression(out, holder->at);
        }
        text_append_char(out, '\n');
    }
    free(holders.items);
}

static void append_pool_line(const PoolStatistics *statistics, Text *out) {
    uint64_t served = statistics->reuses + statistics->allocations;
    text_format(out,
                "pool: %llu cached, %.2f MB · %llu allocated, %llu reused (%.1f %%) · "
                "%llu evicted\n",
                (unsigned long long)statistics->cached_buffers, megabytes(statistics->cached_bytes),
                (unsigned long long)statistics->allocations, (unsigned long long)statistics->reuses,
                served > 0 ? 100.0 * (double)statistics->reuses / (double)served : 0.0,
                (unsigned long long)statistics->evictions);
}

static void append_statistics(const Pool *pool, Text *out) {
    const PoolStatistics *statistics = &pool->statistics;
    append_pool_line(statistics, out);
    text_format(out,
                "live: %llu buffer%s, %.2f MB · peak %.2f MB · %.2f MB uploaded, %.2f MB "
                "downloaded · %llu wait%s · %llu bytes live at most, at any moment\n",
                (unsigned long long)statistics->live_buffers, plural(statistics->live_buffers),
                megabytes(statistics->live_bytes), megabytes(statistics->peak_bytes),
                megabytes(statistics->bytes_uploaded), megabytes(statistics->bytes_downloaded),
                (unsigned long long)statistics->waits, plural(statistics->waits),
                (unsigned long long)pool_most_bytes(pool));
}

// `now` is "now" in the middle of a run, "after" at the end of it.
static void append_limit_line(const Pool *pool, Text *out) {
    const PoolStatistics *statistics = &pool->statistics;
    uint64_t pieces = statistics->pieces;
    if (statistics->moves_out + statistics->lends + statistics->forgets + pieces == 0) return;
    text_format(out, "limit: %.2f MB · %.2f MB moved out in %llu part%s, %.2f MB brought back",
                megabytes(pool->limit), megabytes(statistics->moved_out_bytes),
                (unsigned long long)statistics->moves_out, plural(statistics->moves_out),
                megabytes(statistics->moved_in_bytes));
    if (statistics->lends > 0)
        text_format(out, ", %.2f MB in %llu part%s used where they were",
                    megabytes(statistics->lent_bytes), (unsigned long long)statistics->lends,
                    plural(statistics->lends));
    if (statistics->forgets > 0)
        text_format(out, ", %.2f MB in %llu part%s computed again",
                    megabytes(statistics->forgotten_bytes), (unsigned long long)statistics->forgets,
                    plural(statistics->forgets));
    if (pieces > 0)
        text_format(out, ", %llu operation%s in %llu piece%s that moved %.2f MB",
                    (unsigned long long)statistics->calls_in_pieces,
                    plural(statistics->calls_in_pieces), (unsigned long long)pieces, plural(pieces),
                    megabytes(statistics->piece_bytes));
    text_format(out, ", %.2f s of moving\n", (double)statistics->limit_nanoseconds * 1e-9);
    if (statistics->unlocked_bytes > 0)
        text_format(out,
                    "       %.2f MB of it to ordinary memory of the host, more slowly: the driver "
                    "refused page-locked memory\n",
                    megabytes(statistics->unlocked_bytes));
}

static void append_report(const Pool *pool, const char *now, Text *out) {
    const PoolStatistics *statistics = &pool->statistics;
    double live = megabytes(statistics->live_bytes);
    text_format(out, "=== Device memory check: %s %s ===\n", pool->device->name,
                pool->device->description);
    text_format(out, "%-10s%12.2f MB\n", "before", 0.0);
    text_format(out, "%-10s%12.2f MB", "peak", megabytes(statistics->peak_bytes));
    if (source_find(statistics->peak_origin.at).file) {
        text_append_string(out, "   at ");
        describe_place(out, statistics->peak_origin);
    }
    text_format(out, "\n%-10s%12.2f MB   change +%.2f MB\n", now, live, live);
    if (statistics->repacked_bytes > 0)
        text_format(out, "%-10s%12.2f MB   of weights, in the layout of products\n", "repacked",
                    megabytes(statistics->repacked_bytes));
    if (statistics->mapped_bytes > 0)
        text_format(out, "%-10s%12.2f MB   of files, used where they are\n", "mapped",
                    megabytes(statistics->mapped_bytes));
    append_holders(pool, out);
    append_pool_line(statistics, out);
    append_limit_line(pool, out);
}

void memory_report(Device *device, Text *out) {
    Pool *pool = device->pool;
    append_report(pool, "now", out);
}

void report_forecast(const Device *device, Forecast *out) {
    Pool *pool = device->pool;
    out->peak_bytes = pool->statistics.peak_bytes;
    out->peak_at = pool->statistics.peak_origin.at;
    out->cached_bytes = pool->statistics.cached_bytes;
    out->cached_buffers = pool->statistics.cached_buffers;
    for (int i = 0; i < PURPOSE_COUNT; i++) {
        out->purposes[i] = account_peak_bytes(&pool->accounts, &pool->purposes[i]);
        out->purposes_most[i] = pool->purposes_most[i];
    }
    Holders holders = collect_holders(pool, true);
    for (size_t i = 0; i < holders.count && i < FORETELL_HOLDERS_MAX; i++)
        out->holders[out->holder_count++] =
            (ForecastHolder){holders.items[i].at, holders.items[i].bytes};
    free(holders.items);
}

// --- the check at the end ------------------------------------------------------------------------

typedef struct Leaks {
    uint64_t buffers, bytes;
} Leaks;

static Leaks count_leaks(const Pool *pool) {
    const Buffer *lists[] = {pool->live, pool->away};
    Leaks leaks = {0, 0};
    for (int i = 0; i < 2; i++)
        for (const Buffer *buffer = lists[i]; buffer; buffer = buffer->next) {
            leaks.buffers++;
            leaks.bytes += buffer->bytes;
        }
    return leaks;
}

static int compare_buffers(const void *x, const void *y) {
    const Buffer *a = *(const Buffer *const *)x, *b = *(const Buffer *const *)y;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    if (a->origin.at != b->origin.at) return a->origin.at < b->origin.at ? -1 : 1;
    return (a->origin.called_from > b->origin.called_from) -
           (a->origin.called_from < b->origin.called_from);
}

static void append_leaked_buffers(const Pool *pool, Leaks leaks, Text *out) {
    SCOPED_MEMORY const Buffer **buffers = memory_allocate_zeroed(leaks.buffers, sizeof(Buffer *));
    size_t count = 0;
    const Buffer *lists[] = {pool->live, pool->away};
    for (int i = 0; i < 2; i++)
        for (const Buffer *buffer = lists[i]; buffer; buffer = buffer->next)
            buffers[count++] = buffer;
    ASSERT(count > 0 && count == leaks.buffers);
    qsort(buffers, count, sizeof *buffers, compare_buffers);
    int width = snprintf(NULL, 0, "%.2f", megabytes(buffers[0]->bytes));
    for (size_t i = 0; i < count && i < LEAKS_SHOWN; i++) {
        text_format(out, "  %*.2f MB  ", width, megabytes(buffers[i]->bytes));
        describe_label(out, &buffers[i]->label, buffers[i]->bytes);
        text_append_string(out, buffers[i]->import.release ? "  mapped at " : "  made at ");
        describe_origin(out, buffers[i]->origin);
        text_append_char(out, '\n');
    }
    if (count > LEAKS_SHOWN)
        text_format(out, "  and %zu more buffer%s\n", count - LEAKS_SHOWN,
                    plural(count - LEAKS_SHOWN));
}

static void append_leak_warning(const Pool *pool, Leaks leaks, Text *out) {
    text_format(out, "warning: device memory leaked: %llu buffer%s, %.2f MB",
                (unsigned long long)leaks.buffers, plural(leaks.buffers), megabytes(leaks.bytes));
    if (megabytes(leaks.bytes) < 0.005)
        text_format(out, " (%llu byte%s)", (unsigned long long)leaks.bytes, plural(leaks.bytes));
    text_format(out, " %s still held after every variable was cleared\n",
                leaks.buffers == 1 ? "was" : "were");
    append_leaked_buffers(pool, leaks, out);
}

uint64_t memory_check(Device *device, Text *out) {
    Pool *pool = device->pool;
    Leaks leaks = count_leaks(pool);
    ASSERT(leaks.buffers >= pool->statistics.live_buffers); // and those that are imported
    if (leaks.buffers > 0) append_leak_warning(pool, leaks, out);
    SCOPED_TEXT(report);
    if (pool->settings.memory_check != MEMORY_CHECK_OFF) append_report(pool, "after", &report);
    if (pool->settings.buffer_stats) append_statistics(pool, &report);
    if (leaks.buffers > 0) {
        uint64_t purged = pool_purge(pool);
        text_format(out, "purged: %.2f MB returned to the device, %.2f MB remain\n",
                    megabytes(purged), megabytes(pool_statistics(device).live_bytes));
    }
    text_append(out, text_get(&report), report.length);
    if (pool->settings.memory_check != MEMORY_CHECK_OFF && leaks.buffers == 0)
        text_append_string(out, "no leak: every buffer was released\n");
    return leaks.buffers;
}
