// Kernels whose operands and results do not fit on the device together, one part of the work after
// another: a range of the rows that the kernel computes alone (the columns `kept` and `follow` of
// kernels.def). Of what is away only the bytes that a part touches come to the device, and go back
// when it has written them. Nothing outside this folder includes it.
#ifndef DEVICE_PIECES_H
#define DEVICE_PIECES_H

#include "device/kernel.h"

typedef Status (*PieceRun)(Device *device, const KernelCall *call);
// Runs a call in pieces, where that is needed and possible; else `*done` is false and nothing has
// run.
Status pieces_run(const KernelCall *call, PieceRun run, bool *done) MUST_USE;

#endif
