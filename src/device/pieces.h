// Kernels whose operands and results do not fit on the device together, one part of the work after
// another: a range of the rows that the kernel computes alone (the columns `kept` and `follow` of
// kernels.def), or some parts of the one row that becomes a number. Of what is away only the bytes
// that a part touches come to the device, and go back when it has written them. Nothing outside
// this folder includes it.
#ifndef DEVICE_PIECES_H
#define DEVICE_PIECES_H

#include "device/kernel.h"

enum {
    PIECE_BYTES = 32 << 20, // of all windows: more takes room from others and no time from moving
    WINDOW_ALIGNMENT = 256, // kernels choose by alignment how they add
};

typedef Status (*PieceRun)(Device *device, const KernelCall *call);
// Runs a call in pieces, where that is needed and possible; else `*done` is false and nothing has
// run.
Status pieces_run(const KernelCall *call, PieceRun run, bool *done) MUST_USE;
// The same of a reduction to one number whose operand is away, with `room` bytes for pieces.
// pieces_reduce.c
Status pieces_reduce(const KernelCall *call, PieceRun run, uint64_t room, bool *done) MUST_USE;

#endif
