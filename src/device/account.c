// Accounts of held bytes by origin, kept current at every allocation and release, so that a
// refusal, the holders at the peak and a leak can be told without walking all buffers. Knows no
// buffers.
#include <stdlib.h>

#include "base/memory.h"
#include "device/account.h"
#include "device/pool.h"

enum { FIRST_SLOTS = 64 };

static size_t slot_of(const PoolAccounts *accounts, Origin origin) {
    uint64_t key = (uint64_t)origin.at << 32 | origin.called_from;
    ASSERT(accounts->slot_count > 1); // the upper bits of the product, which all of the key moves
    return (size_t)(key * 0x9E3779B97F4A7C15u >> (__builtin_clzll(accounts->slot_count) + 1));
}

static PoolOrigin **find_slot(const PoolAccounts *accounts, Origin origin) {
    size_t slot = slot_of(accounts, origin);
    for (;;) {
        PoolOrigin *account = accounts->slots[slot];
        if (!account ||
            (account->origin.at == origin.at && account->origin.called_from == origin.called_from))
            return &accounts->slots[slot];
        slot = (slot + 1) & (accounts->slot_count - 1);
    }
}

static void grow(PoolAccounts *accounts) {
    PoolAccounts old = *accounts;
    accounts->slot_count = old.slot_count ? old.slot_count * 2 : FIRST_SLOTS;
    accounts->slots = memory_allocate_zeroed(accounts->slot_count, sizeof *accounts->slots);
    for (size_t i = 0; i < old.slot_count; i++)
        if (old.slots[i]) *find_slot(accounts, old.slots[i]->origin) = old.slots[i];
    free(old.slots);
}

PoolOrigin *account_find(PoolAccounts *accounts, Origin origin) {
    if (UNLIKELY(accounts->used * 2 >= accounts->slot_count)) grow(accounts);
    ASSERT(accounts->used < accounts->slot_count); // or the search for a free slot had no end
    PoolOrigin **slot = find_slot(accounts, origin);
    if (UNLIKELY(!*slot)) {
        *slot = memory_allocate_zeroed(1, sizeof **slot);
        (*slot)->origin = origin;
        (*slot)->peak_epoch = UINT64_MAX; // older than every peak
        accounts->used++;
    }
    return *slot;
}

static void keep_peak(const PoolAccounts *accounts, PoolOrigin *account) {
    if (account->peak_epoch == accounts->peak_epoch) return;
    account->peak_bytes = account->live_bytes;
    account->peak_epoch = accounts->peak_epoch;
}

void account_add(PoolAccounts *accounts, PoolOrigin *account, uint64_t bytes) {
    keep_peak(accounts, account);
    account->live_bytes += bytes;
    account->live_buffers++;
}

void account_subtract(PoolAccounts *accounts, PoolOrigin *account, uint64_t bytes) {
    keep_peak(accounts, account);
    ASSERT(account->live_bytes >= bytes);
    account->live_bytes -= bytes;
    ASSERT(account->live_buffers > 0);
    account->live_buffers--;
}

uint64_t account_peak_bytes(const PoolAccounts *accounts, const PoolOrigin *account) {
    return account->peak_epoch == accounts->peak_epoch ? account->peak_bytes : account->live_bytes;
}

void account_free(PoolAccounts *accounts) {
    for (size_t i = 0; i < accounts->slot_count; i++) free(accounts->slots[i]);
    free(accounts->slots);
    *accounts = (PoolAccounts){0};
}
