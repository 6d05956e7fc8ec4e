// Reading a dimension by index arithmetic: every place that a sum of indexes takes is computed
// here, one gather fetches them, and its dimension falls into one for each index.
#include <stdlib.h>

#include "equation/gather.h"
#include "equation/named.h"
#include "tensor/compose.h"

typedef struct Places {
    int indexes[RANK_MAX]; // of the sum, each once
    int64_t sizes[RANK_MAX], factors[RANK_MAX];
    int count;
    int64_t offset, divisor;
} Places;

static Status add_index(Places *places, int index, int64_t factor, int64_t size) {
    int at = 0;
    while (at < places->count && places->indexes[at] != index) at++;
    TRY(named_check_rank(at + 1));
    if (at == places->count) places->factors[places->count++] = 0;
    places->indexes[at] = index;
    places->sizes[at] = size;
    places->factors[at] += factor;
    return STATUS_OK;
}

static Status read_places(const Position *position, const EquationSizes *sizes, Places *places) {
    *places = (Places){.divisor = position->divisor < 0 ? 1 : sizes->values[position->divisor]};
    for (size_t i = 0; i < position->count; i++) {
        const IndexPart *part = &position->parts[i];
        int64_t factor = part->factor < 0 ? 1 : sizes->values[part->factor];
        if (part->negative) factor = -factor;
        if (part->index < 0)
            places->offset += factor;
        else
            TRY(add_index(places, part->index, factor, sizes->sizes[part->index]));
    }
    return STATUS_OK;
}

// The places in row-major order of the indexes.
static Status places_tensor(const Places *places, Tensor **out) {
    ASSERT(places->divisor != 0 && places->count <= RANK_MAX);
    Shape shape = {.rank = 1, .dims = {1}};
    for (int i = 0; i < places->count; i++)
        shape.dims[0] = size_multiply(shape.dims[0], places->sizes[i]);
    int64_t count = shape.dims[0], *numbers = memory_allocate((size_t)count * sizeof *numbers + 1);
    for (int64_t n = 0; n < count; n++) {
        int64_t sum = places->offset, rest = n;
        for (int i = places->count - 1; i >= 0; i--) {
            sum += rest % places->sizes[i] * places->factors[i];
            rest /= places->sizes[i];
        }
        numbers[n] = sum / places->divisor; // never negative: equation_sizes has seen to it
    }
    Status status = tensor_from_integers(numbers, &shape, DTYPE_INT64, out);
    free(numbers);
    return status;
}

Status named_gather(Named *named, int dim, const Position *position, const EquationSizes *sizes,
                    Tensor **out) {
    Places places;
    ASSERT(named->value.kind == VALUE_TENSOR && dim >= 0 && dim < named->count);
    TRY(read_places(position, sizes, &places));
    Tensor *x = named->value.as.tensor;
    Shape shape = {.rank = x->view.rank - 1 + places.count};
    TRY(named_check_rank(shape.rank));
    int indexes[RANK_MAX] = {0};
    for (int i = 0, at = 0; i < x->view.rank; i++) {
        if (i != dim) {
            indexes[at] = named->indexes[i];
            shape.dims[at++] = x->view.dims[i];
        }
        for (int j = 0; i == dim && j < places.count; j++) {
            indexes[at] = places.indexes[j];
            shape.dims[at++] = places.sizes[j];
        }
    }
    SCOPED_TENSOR(index);
    SCOPED_TENSOR(flat);
    TRY(places_tensor(&places, &index));
    OpAttributes along = {.given = ATTRIBUTE_BIT(dim), .dim = dim};
    TRY(op_with(OP_index_select, (Tensor *[]){x, index}, 2, &along, &flat));
    OpAttributes split = {.given = ATTRIBUTE_BIT(shape), .shape = shape};
    TRY(op_with(OP_reshape, &flat, 1, &split, out));
    memcpy(named->indexes, indexes, sizeof indexes);
    named->count = shape.rank;
    return STATUS_OK;
}
