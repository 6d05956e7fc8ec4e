// Entity types as tensors: their sizes, unit vectors of their members, embeddings.
#include "reason/embedding.h"
#include "tensor/compose.h"
#include "value/convert.h"

static Status type_argument(Value value, const char *what, Reasoner *reasoner, Table **members) {
    bool type = value.kind == VALUE_HANDLE && value.as.handle->type == &handle_relation &&
                ((Relation *)value.as.handle->payload)->entities;
    if (!type) return fail_kind(what, "an entity type", value);
    TRY(reasoner_enter(reasoner));
    Status status = type_members(reasoner->store, value.as.handle->payload, members);
    reasoner_leave(reasoner);
    return status;
}

Value builtin_entity_dim(BuiltinCall *call) {
    Table *members;
    Reasoner *reasoner = reasoner_get(call->interp);
    TRY_VALUE(type_argument(call->arguments[0], "entity_dim: type", reasoner, &members));
    return value_int(table_live(members));
}

Value builtin_entity_onehot(BuiltinCall *call) {
    Table *members;
    int64_t place;
    Tensor *result;
    Reasoner *reasoner = reasoner_get(call->interp);
    Value type = call->arguments[0];
    TRY_VALUE(type_argument(type, "entity_onehot: type", reasoner, &members));
    TRY_VALUE(relation_tensor.place(type.as.handle, 0, call->arguments[1].as.string, &place));
    SCOPED_TENSOR(index);
    Shape shape = {.rank = 0};
    TRY_VALUE(tensor_from_integers(&place, &shape, DTYPE_INT64, &index));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(n), .n = table_live(members)};
    SCOPED_TENSOR(bits);
    TRY_VALUE(op_with(OP_one_hot, &index, 1, &attributes, &bits));
    TRY_VALUE(compose_floating(bits, &result));
    return value_tensor(result);
}

Value builtin_embedding_table(BuiltinCall *call) {
    EmbeddingOptions options = {.entities = call->arguments[0],
                                .dimension = call->arguments[1].as.integer,
                                .init = call->arguments[2].as.string,
                                .learnable = call->arguments[3].as.integer != 0};
    return embedding_new(reasoner_get(call->interp), &options);
}
