// Who holds how many bytes: an account for each expression and place that it is called from.
#ifndef DEVICE_ACCOUNT_H
#define DEVICE_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "base/origin.h"

// Bytes held by what one expression made, called from one place. `peak_bytes` is what it held at
// the pool's peak, written when the account changes for the first time after that peak.
typedef struct PoolOrigin {
    Origin origin;
    uint64_t live_bytes, live_buffers;
    uint64_t peak_bytes, peak_epoch;
    uint64_t told_bytes, told_at; // what a timeline was told of it last, and when
} PoolOrigin;

// Open addressing; accounts never move or go, because buffers point to theirs.
typedef struct PoolAccounts {
    PoolOrigin **slots; // NULL: free
    size_t slot_count, used;
    uint64_t peak_epoch; // counts the peaks
} PoolAccounts;

PoolOrigin *account_find(PoolAccounts *accounts, Origin origin);
void account_add(PoolAccounts *accounts, PoolOrigin *account, uint64_t bytes);
void account_subtract(PoolAccounts *accounts, PoolOrigin *account, uint64_t bytes);
uint64_t account_peak_bytes(const PoolAccounts *accounts, const PoolOrigin *account);
void account_free(PoolAccounts *accounts);

#endif
