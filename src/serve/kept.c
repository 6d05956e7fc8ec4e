// Texts that were finished, of which the next request may be a continuation: a talk sends all that
// was said before with every question.
#include <stdlib.h>
#include <string.h>

#include "serve/jobs.h"
#include "serve/kept.h"

enum { COMMON_LEAST = 8 }; // fewer ids are computed again as quickly

void kept_add(ServedNetwork *served, Sequence *sequence) {
    if (served->network->cache_field < 0) {
        sequence_free(sequence);
        return;
    }
    if (served->kept_count == KEPT_MAX) {
        sequence_free(served->kept[0]);
        memmove(served->kept, served->kept + 1, --served->kept_count * sizeof *served->kept);
    }
    served->kept[served->kept_count++] = sequence;
}

static size_t common(const Sequence *sequence, const int64_t *ids, size_t count) {
    size_t most = sequence->count < count ? sequence->count : count, i = 0;
    while (i < most && sequence->ids[i] == ids[i]) i++;
    return i;
}

// The last id of a prompt is always computed: what follows is what is asked.
Status kept_take(ServedNetwork *served, const int64_t *ids, size_t count, Sequence **out) {
    size_t best = 0, best_common = 0;
    *out = NULL;
    for (size_t i = 0; i < served->kept_count; i++) {
        size_t alike = common(served->kept[i], ids, count);
        if (alike < best_common) continue;
        best = i;
        best_common = alike;
    }
    if (best_common == count && count > 0) best_common--;
    if (best_common < COMMON_LEAST) return STATUS_OK;
    Sequence *sequence = served->kept[best];
    memmove(served->kept + best, served->kept + best + 1,
            (--served->kept_count - best) * sizeof *served->kept);
    Status status = sequence_truncate(sequence, best_common);
    if (status == STATUS_OK)
        *out = sequence;
    else
        sequence_free(sequence);
    return status;
}

void kept_clear(ServedNetwork *served) {
    while (served->kept_count > 0) sequence_free(served->kept[--served->kept_count]);
}
