// Files of facts with what the facts weigh: numbers, whatever values of the program gave them.
#include "logic/archive.h"
#include "reason/reason.h"
#include "tensor/tensor.h"

typedef struct WeightFile {
    Reasoner *reasoner;
    WeightReads reads;
    uint64_t groups; // that the program made before those of the file
} WeightFile;

static bool any_weight(void *context, const Relation *relation) {
    return weight_in_relation(((WeightFile *)context)->reasoner, relation);
}

static Status find_weight(void *context, const Relation *relation, const Datum *values,
                          FactWeight *out, bool *found) {
    WeightFile *file = context;
    int64_t number = weight_of_fact(file->reasoner, relation, values);
    *found = number >= 0;
    if (!*found) return STATUS_OK;
    out->group = weight_group(file->reasoner, (uint32_t)number);
    return weight_read(&file->reasoner->weights, (uint32_t)number, &file->reads, &out->number);
}

static void take_weight(void *context, const Relation *relation, const Datum *values,
                        const FactWeight *weight) {
    WeightFile *file = context;
    Weights *weights = &file->reasoner->weights;
    Weight taken = weight_whole(weight ? value_float(weight->number) : value_absent());
    if (weight && weight->group > 0) taken.part.group = file->groups + weight->group;
    if (taken.part.group > weights->groups) weights->groups = taken.part.group;
    weight_set_fact(file->reasoner, relation, values, taken);
}

static Status with_file(WeightFile *file, Relation *only, const char *path, uint64_t *added) {
    FactWeigher weigher = {file, any_weight, find_weight, take_weight};
    Archive what = {file->reasoner->store, only, &weigher};
    file->groups = file->reasoner->weights.groups;
    Status status = added ? store_load(&what, path, added) : store_save(&what, path);
    weight_reads_free(&file->reads);
    return status;
}

Status reasoner_save_facts(Reasoner *reasoner, Relation *only, const char *path) {
    WeightFile file = {.reasoner = reasoner};
    return with_file(&file, only, path, NULL);
}

Status reasoner_load_facts(Reasoner *reasoner, Relation *only, const char *path, uint64_t *added) {
    WeightFile file = {.reasoner = reasoner};
    TRY(reasoner_enter(reasoner));
    Status status = with_file(&file, only, path, added);
    reasoner_leave(reasoner);
    return status;
}
