// generate and chat: a model goes on with a text, token by token, until it ends, is stopped or
// full.
#include <stdlib.h>
#include <string.h>

#include "chat/chat.h"
#include "library/pass.h"
#include "model/model.h"
#include "model/tokenizer.h"
#include "tensor/compose.h"
#include "tensor/random.h"
#include "value/builtin.h"
#include "value/convert.h"
#include "value/object.h"

// The arguments in the order of the signature.
enum { MODEL, PROMPT, MAX_TOKENS, TEMPERATURE, TOP_K, TOP_P, SEED, STOP, ON_TOKEN };

static const double GREEDY_TEMPERATURE = 1e-4; // at and below it nothing is drawn

typedef struct Generation {
    BuiltinCall *call;
    bool chats; // the prompt is messages
    Pass pass;
    Tokenizer *tokenizer; // the model's; NULL when it has none and the prompt is ids
    TokenStream stream;
    double temperature;
    RandomStream random; // with a seed: a stream of its own
    Value stops;         // a list of strings that are not empty
    Text text;           // everything so far
    size_t told;         // bytes of it that on_token has been given
    Value ids;           // without a tokenizer: what was said
} Generation;

static bool given(const Generation *generation, int argument) {
    return generation->call->arguments[argument].kind != VALUE_ABSENT;
}

// --- the next token

static Status apply(OpId op, const OpAttributes *attributes, Tensor **logits) {
    Tensor *narrowed = NULL;
    TRY(op_with(op, logits, 1, attributes, &narrowed));
    tensor_release(*logits);
    *logits = narrowed;
    return STATUS_OK;
}

// The temperature shapes the probabilities before top_k and top_p choose among them.
static Status narrow(const Generation *generation, Tensor **logits) {
    const Value *arguments = generation->call->arguments;
    if (generation->temperature > GREEDY_TEMPERATURE)
        TRY(apply(OP_temperature,
                  &(OpAttributes){.given = ATTRIBUTE_BIT(temperature),
                                  .temperature = generation->temperature},
                  logits));
    if (given(generation, TOP_K)) {
        OpAttributes attributes = {.given = ATTRIBUTE_BIT(k)};
        TRY(value_to_int(arguments[TOP_K], "top_k", &attributes.k));
        TRY(apply(OP_top_k, &attributes, logits));
    }
    if (!given(generation, TOP_P)) return STATUS_OK;
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(p)};
    TRY(value_to_double(arguments[TOP_P], "top_p", &attributes.p));
    return apply(OP_top_p, &attributes, logits);
}

static Status draw(const Generation *generation, Tensor *logits, int64_t *out) {
    bool greedy = generation->temperature <= GREEDY_TEMPERATURE;
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(temperature),
                               .temperature = greedy ? 0.0 : 1.0};
    SCOPED_TENSOR(choice);
    TRY(op_with(OP_temperature_sample, &logits, 1, &attributes, &choice));
    return tensor_read_integers(choice, out);
}

// The program's own random numbers go on untouched where a seed was given.
static Status choose(Generation *generation, Tensor *logits, int64_t *out) {
    SCOPED_TENSOR(narrowed);
    narrowed = tensor_retain(logits);
    TRY(narrow(generation, &narrowed));
    if (!given(generation, SEED)) return draw(generation, narrowed, out);
    RandomStream outer = random_mark();
    random_return(generation->random);
    Status status = draw(generation, narrowed, out);
    generation->random = random_mark();
    random_return(outer);
    return status;
}

// --- what is said

static bool begins_with(const char *text, size_t length, const String *stop) {
    size_t shorter = length < stop->length ? length : stop->length;
    return memcmp(text, stop->bytes, shorter) == 0;
}

// Cuts the text at the first stop in it. True when there is one; *held is the number of bytes at
// the end that may yet become a stop.
static bool find_stop(Generation *generation, size_t *held) {
    const List *stops = generation->stops.as.list;
    Text *text = &generation->text;
    *held = 0;
    for (size_t at = generation->told; at < text->length; at++)
        for (size_t i = 0; i < stops->count; i++) {
            const String *stop = stops->items[i].as.string;
            size_t left = text->length - at;
            if (!begins_with(text->bytes + at, left, stop)) continue;
            if (left >= stop->length) {
                text->length = at;
                text->bytes[at] = '\0';
                *held = 0;
                return true;
            }
            if (*held == 0) *held = left;
        }
    return false;
}

static Status call_on_token(const Generation *generation, Value piece) {
    if (!given(generation, ON_TOKEN)) return STATUS_OK;
    Value result =
        interp_call(generation->call->interp, generation->call->arguments[ON_TOKEN], &piece, 1);
    if (result.kind == VALUE_FAIL && error_current()->code == STATUS_OK)
        return STATUS_INTERRUPT; // by exit(n)
    if (result.kind == VALUE_FAIL) return error_current()->code;
    value_release(result);
    return STATUS_OK;
}

static Status tell(Generation *generation, size_t end) {
    if (end <= generation->told) return STATUS_OK;
    Value piece =
        value_string(text_get(&generation->text) + generation->told, end - generation->told);
    generation->told = end;
    return call_on_token(generation, piece);
}

// --- the loop

static bool is_end(const Generation *generation, int64_t id) {
    if (!generation->tokenizer) return false;
    return tokenizer_is_end(generation->tokenizer, id) ||
           id == tokenizer_bos(generation->tokenizer); // a text of its own begins
}

static bool is_full(const Generation *generation) {
    const Pass *pass = &generation->pass;
    return pass->context > 0 && pass->position >= pass->context;
}

static Status say(Generation *generation, int64_t id, bool *stopped) {
    size_t held;
    if (!generation->tokenizer) {
        list_push(generation->ids.as.list, value_int(id));
        return call_on_token(generation, value_int(id));
    }
    TRY(tokenizer_decode_next(generation->tokenizer, &generation->stream, id, true,
                              &generation->text));
    *stopped = find_stop(generation, &held);
    return tell(generation, generation->text.length - held);
}

static Status go_on(Generation *generation, Tensor **logits, int64_t max_tokens) {
    bool stopped = false;
    for (int64_t i = 0; i < max_tokens && !stopped; i++) {
        int64_t id = 0;
        if (interp_interrupts()) {
            (void)interp_fail_interrupted((Span){origin_current.at, origin_current.at});
            return error_current()->code;
        }
        TRY(choose(generation, *logits, &id));
        if (is_end(generation, id)) break;
        TRY(say(generation, id, &stopped));
        if (stopped || i + 1 == max_tokens || is_full(generation)) break;
        tensor_release(*logits);
        *logits = NULL;
        TRY(pass_advance(&generation->pass, &id, 1, logits));
    }
    return tell(generation, generation->text.length);
}

// --- what is asked

static Status encode(const Generation *generation, const char *text, size_t length, bool special,
                     int64_t **ids, size_t *count) {
    TokenList tokens = {0};
    Status status = tokenizer_encode(generation->tokenizer, text, length, special, &tokens);
    *ids = tokens.ids;
    *count = tokens.count;
    return status;
}

// Whether a text begins with the mark that encoding would put before it.
static bool is_begun(const Generation *generation, const Text *text) {
    int64_t bos = tokenizer_bos(generation->tokenizer);
    Text mark = {0};
    bool begun =
        bos >= 0 && tokenizer_decode(generation->tokenizer, &bos, 1, false, &mark) == STATUS_OK &&
        mark.length <= text->length && memcmp(text_get(&mark), text_get(text), mark.length) == 0;
    text_free(&mark);
    return begun;
}

static Status read_messages(const Generation *generation, int64_t **ids, size_t *count) {
    const Value *arguments = generation->call->arguments;
    Text text = {0};
    Status status = chat_prompt(arguments[MODEL].as.handle->payload, generation->tokenizer,
                                arguments[PROMPT], true, &text);
    if (status == STATUS_OK)
        status = encode(generation, text_get(&text), text.length, !is_begun(generation, &text), ids,
                        count);
    text_free(&text);
    return status;
}

static Status read_prompt(const Generation *generation, int64_t **ids, size_t *count) {
    Value prompt = generation->call->arguments[PROMPT];
    if (generation->chats) return read_messages(generation, ids, count);
    if (prompt.kind != VALUE_STRING) return value_to_ints(prompt, "prompt", ids, count);
    return encode(generation, prompt.as.string->bytes, prompt.as.string->length, true, ids, count);
}

static Status check_prompt(const Generation *generation, size_t count) {
    int64_t context = generation->pass.context;
    if (count == 0) return fail(STATUS_VALUE, "the prompt has no tokens");
    if (context == 0 || (int64_t)count <= context) return STATUS_OK;
    return fail(STATUS_VALUE, "the prompt has %zu tokens, but the model's context is %lld", count,
                (long long)context);
}

static Status answer(Generation *generation, int64_t max_tokens) {
    int64_t *ids = NULL;
    size_t count = 0;
    SCOPED_TENSOR(logits);
    Status status = read_prompt(generation, &ids, &count);
    if (status == STATUS_OK) status = check_prompt(generation, count);
    if (status == STATUS_OK && max_tokens > 0)
        status = pass_advance(&generation->pass, ids, count, &logits);
    free(ids);
    TRY(status);
    return go_on(generation, &logits, max_tokens);
}

// One string or a list of them.
static Status read_stops(Generation *generation) {
    Value stop = generation->call->arguments[STOP];
    generation->stops = value_list(1);
    if (stop.kind == VALUE_ABSENT) return STATUS_OK;
    bool many = stop.kind == VALUE_LIST || stop.kind == VALUE_TUPLE;
    size_t count = many ? stop.as.list->count : 1;
    for (size_t i = 0; i < count; i++) {
        Value each = many ? stop.as.list->items[i] : stop;
        if (each.kind != VALUE_STRING || each.as.string->length == 0)
            return fail_kind("stop", "a string that is not empty, or a list of them", each);
        list_push(generation->stops.as.list, value_retain(each));
    }
    return STATUS_OK;
}

static Status run(Generation *generation) {
    const Value *arguments = generation->call->arguments;
    Model *model = arguments[MODEL].as.handle->payload;
    int64_t max_tokens, seed = 0;
    TRY(value_to_int(arguments[MAX_TOKENS], "max_tokens", &max_tokens));
    TRY(value_to_double(arguments[TEMPERATURE], "temperature", &generation->temperature));
    if (max_tokens < 0 || !(generation->temperature >= 0))
        return fail(STATUS_VALUE, "%s must not be negative",
                    max_tokens < 0 ? "max_tokens" : "temperature");
    if (given(generation, SEED)) TRY(value_to_int(arguments[SEED], "seed", &seed));
    generation->random = (RandomStream){.key = (uint64_t)seed};
    TRY(read_stops(generation));
    TRY(pass_open(generation->call->interp, arguments[MODEL], &generation->pass));
    bool vocabulary = model_has_tokenizer(model);
    bool text =
        generation->chats || arguments[PROMPT].kind == VALUE_STRING || given(generation, STOP);
    if (vocabulary || text) TRY(model_tokenizer(model, &generation->tokenizer));
    return answer(generation, max_tokens);
}

static Value generate(Generation generation) {
    generation.stops = value_none();
    generation.ids = value_list(1);
    Status status = run(&generation);
    Value result = value_fail();
    if (status == STATUS_OK)
        result = generation.tokenizer
                     ? value_string(text_get(&generation.text), generation.text.length)
                     : value_retain(generation.ids);
    value_release(generation.ids);
    pass_close(&generation.pass);
    value_release(generation.stops);
    text_free(&generation.text);
    return result;
}

Value builtin_generate(BuiltinCall *call) {
    return generate((Generation){.call = call});
}

Value builtin_chat(BuiltinCall *call) {
    return generate((Generation){.call = call, .chats = true});
}

Value builtin_apply_chat_template(BuiltinCall *call) {
    Model *model = call->arguments[0].as.handle->payload;
    Tokenizer *tokenizer;
    Text text = {0};
    TRY_VALUE(model_tokenizer(model, &tokenizer));
    Status status = chat_prompt(model, tokenizer, call->arguments[1],
                                call->arguments[2].as.integer != 0, &text);
    Value result = status == STATUS_OK ? value_string(text_get(&text), text.length) : value_fail();
    text_free(&text);
    return result;
}
