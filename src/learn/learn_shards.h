// The files of a block whose ranks share the optimizer's state or the parameters, next to that of
// `save`.
#ifndef LEARN_LEARN_SHARDS_H
#define LEARN_LEARN_SHARDS_H

#include "learn/learn.h"
#include "value/archive.h"

// Whether every rank has a part of the state.
bool learn_is_sharded(const LearnRun *run);
// This rank's file; the archive has the parameters. Waits for those of the others.
Status learn_write_shard(const LearnRun *run, Archive *archive,
                         const TensorFormat *format) MUST_USE;
// Their names go into the file of `save`, and parameters that are in parts out of it.
void learn_name_shards(const LearnRun *run, Archive *archive, const TensorFormat *format);
// Adds what the files hold that the archive names, parameters that were in parts as wholes.
Status learn_read_shards(Archive *archive, const TensorFormat *format) MUST_USE;
// Once the file of `save` is there: removes the files of ranks next to it that it does not name,
// those of earlier saves and of saves that came to nothing.
void learn_remove_shards(const Archive *now, const TensorFormat *format);

#endif
