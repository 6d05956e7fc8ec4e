// The index of a model in several safetensors files names, for each tensor, a file next to it.
#ifndef MODEL_SHARDS_H
#define MODEL_SHARDS_H

#include "base/file_map.h"

typedef struct ShardVisit {
    Status (*read)(void *context, const char *path); // each file once, in the index's order
    bool (*has)(void *context, const char *name);    // whether it was in one of them
    void *context;
} ShardVisit;

// STATUS_FORMAT when the map of that path is not such an index, or a tensor is in none of the
// files.
Status shards_each(const char *path, const FileMap *map, const ShardVisit *visit) MUST_USE;

#endif
