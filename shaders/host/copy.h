// What copy.comp is given.
#ifndef HOST_COPY_H
#define HOST_COPY_H

#include "language.h"

PUSHED(CopyPush)
    uint64_t out_address, in_address, count; // in items of 16 bytes
END(CopyPush, 24)

#endif
