// generate and chat: arguments to a generation, what it says to a value.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chat/chat.h"
#include "eval/invoke.h"
#include "generate/generation.h"
#include "generate/prompt.h"
#include "generate/prompt_cache.h"
#include "library/constraint_handle.h"
#include "model/model.h"
#include "tensor/compose.h"
#include "value/builtin.h"
#include "value/convert.h"
#include "value/handles.h"

// The arguments in the order of the signature.
enum {
    MODEL,
    PROMPT,
    MAX_TOKENS,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    SEED,
    STOP,
    ON_TOKEN,
    SAMPLERS,
    LOGPROBS,
    CONSTRAINT,
    SPECULATE,
    SHIFT,
    CACHE,
    DETAILS
};

enum { TOKENS_GENERATE = 100, TOKENS_CHAT = 512 }; // where it is not said how many

typedef struct Request {
    BuiltinCall *call;
    bool chats; // the prompt is messages
    bool many;  // the prompt is a list of prompts
    GenerationOptions options;
    const char **stops;
    Network *network;
    PromptCache *cache;     // a folder; NULL: none
    KvCache *kept;          // which the script keeps; borrowed, NULL: none
    struct Teller *tellers; // one for each text
    Generation **generations;
    size_t count;
} Request;

typedef struct Teller {
    Request *request;
    size_t index;
} Teller;

static Value argument(const Request *request, int index) {
    return request->call->arguments[index];
}

static bool given(const Request *request, int index) {
    return argument(request, index).kind != VALUE_ABSENT;
}

// --- what is told

static Status tell(void *context, const char *bytes, size_t length, int64_t id) {
    const Teller *teller = context;
    const Request *request = teller->request;
    Value words[] = {bytes ? value_string(bytes, length) : value_int(id),
                     value_int((int64_t)teller->index)};
    Value result = interp_call(request->call->interp, argument(request, ON_TOKEN), words,
                               request->many ? 2 : 1);
    if (result.kind == VALUE_FAIL && error_current()->code == STATUS_OK)
        return STATUS_INTERRUPT; // by exit(n)
    if (result.kind == VALUE_FAIL) return error_current()->code;
    value_release(result);
    return STATUS_OK;
}

// --- options

static Status fail_stop(Value each) {
    return fail_kind("stop", "a string that is not empty, or a list of them", each);
}

// One string or a list of them.
static Status read_stops(Request *request) {
    Value stop = argument(request, STOP);
    if (stop.kind == VALUE_ABSENT) return STATUS_OK;
    bool many = stop.kind == VALUE_LIST || stop.kind == VALUE_TUPLE;
    size_t count = many ? stop.as.list->count : 1;
    request->stops = memory_allocate_zeroed(count + 1, sizeof *request->stops);
    for (size_t i = 0; i < count; i++) {
        Value each = many ? stop.as.list->items[i] : stop;
        if (each.kind != VALUE_STRING || each.as.string->length == 0) return fail_stop(each);
        request->stops[i] = string_end(each.as.string)->bytes;
    }
    request->options.stops = request->stops;
    request->options.stop_count = count;
    return STATUS_OK;
}

static Status read_sampling(const Request *request, Sampling *out) {
    int64_t seed = 0;
    *out = (Sampling){.interp = request->call->interp,
                      .chain = value_none(),
                      .temperature = 0.7,
                      .top_k = -1,
                      .top_p = 1};
    if (given(request, TEMPERATURE))
        TRY(value_to_double(argument(request, TEMPERATURE), "temperature", &out->temperature));
    if (!(out->temperature >= 0))
        return fail(STATUS_VALUE, "temperature is %g; it must not be negative", out->temperature);
    if (given(request, TOP_K)) TRY(value_to_int(argument(request, TOP_K), "top_k", &out->top_k));
    if (out->top_k < 0 && given(request, TOP_K)) out->top_k = 0; // refused with the words of top_k
    if (given(request, TOP_P)) TRY(value_to_double(argument(request, TOP_P), "top_p", &out->top_p));
    out->has_seed = given(request, SEED);
    if (out->has_seed) TRY(value_to_int(argument(request, SEED), "seed", &seed));
    out->random = (RandomStream){.key = (uint64_t)seed};
    if (!given(request, SAMPLERS)) return STATUS_OK;
    out->chain = argument(request, SAMPLERS);
    if (given(request, TEMPERATURE) || given(request, TOP_K) || given(request, TOP_P))
        return fail(STATUS_VALUE, "samplers stand in place of temperature, top_k and top_p");
    return STATUS_OK;
}

static Status read_count(const Request *request, int index, const char *name, int64_t *out) {
    if (!given(request, index)) return STATUS_OK;
    TRY(value_to_int(argument(request, index), name, out));
    return *out >= 0 ? STATUS_OK : fail(STATUS_VALUE, "%s must not be negative", name);
}

static Status read_constraint(Request *request) {
    void *payload;
    if (!given(request, CONSTRAINT)) return STATUS_OK;
    TRY(value_to_handle(argument(request, CONSTRAINT), &handle_constraint, "constraint", &payload));
    const ConstraintHandle *handle = payload;
    request->options.constraint = handle->constraint;
    request->options.trigger = handle->trigger;
    return STATUS_OK;
}

static Status read_options(Request *request) {
    GenerationOptions *options = &request->options;
    *options = (GenerationOptions){.max_tokens = request->chats ? TOKENS_CHAT : TOKENS_GENERATE,
                                   .at_most = !given(request, MAX_TOKENS),
                                   .logprobs = -1,
                                   .shift = argument(request, SHIFT).as.integer != 0};
    TRY(read_count(request, MAX_TOKENS, "max_tokens", &options->max_tokens));
    TRY(read_count(request, LOGPROBS, "logprobs", &options->logprobs));
    TRY(read_count(request, SPECULATE, "speculate", &options->speculate));
    TRY(read_sampling(request, &options->sampling));
    TRY(read_stops(request));
    TRY(read_constraint(request));
    if (given(request, ON_TOKEN)) options->tell = tell;
    return STATUS_OK;
}

// --- prompts

static Status read_prompt(const Request *request, Value prompt, TokenIds *out) {
    if (request->chats) return network_encode_chat(request->network, prompt, value_none(), out);
    if (prompt.kind != VALUE_STRING) return value_to_ints(prompt, "prompt", &out->ids, &out->count);
    return network_encode(request->network, prompt.as.string->bytes, prompt.as.string->length, true,
                          out);
}

// A list whose first item is a text or a list of ids itself.
static bool is_many(Value prompt) {
    if (prompt.kind != VALUE_LIST && prompt.kind != VALUE_TUPLE) return false;
    if (prompt.as.list->count == 0) return false;
    Value first = prompt.as.list->items[0];
    return first.kind == VALUE_STRING || first.kind == VALUE_LIST || first.kind == VALUE_TUPLE ||
           (first.kind == VALUE_TENSOR && tensor_rank(first.as.tensor) > 0);
}

static Status begin(Request *request, size_t index, Value prompt) {
    TokenIds ids = {0};
    GenerationOptions options = request->options;
    request->tellers[index] = (Teller){request, index};
    options.context = &request->tellers[index];
    Status status = read_prompt(request, prompt, &ids);
    Sequence *known = NULL;
    if (status == STATUS_OK && request->cache && ids.count > 0)
        status = prompt_cache_find(request->cache, ids.ids, ids.count, &known);
    if (status == STATUS_OK && request->kept)
        status = sequence_in(request->network, request->kept, &ids, &known);
    if (status == STATUS_OK)
        status =
            generation_new(request->network, &options, &ids, known, &request->generations[index]);
    free(ids.ids);
    return status;
}

static Status begin_all(Request *request) {
    Value prompt = argument(request, PROMPT);
    request->many = !request->chats && is_many(prompt);
    if (request->many && request->kept)
        return fail(STATUS_VALUE, "a KVCache holds one text, but the prompt is a list of them");
    request->count = request->many ? prompt.as.list->count : 1;
    request->tellers = memory_allocate_zeroed(request->count, sizeof *request->tellers);
    request->generations = memory_allocate_zeroed(request->count, sizeof *request->generations);
    for (size_t i = 0; i < request->count; i++)
        TRY(begin(request, i, request->many ? prompt.as.list->items[i] : prompt));
    return STATUS_OK;
}

static bool is_going(const Request *request) {
    for (size_t i = 0; i < request->count; i++)
        if (!request->generations[i]->finish) return true;
    return false;
}

// --- answers

static Value token_text(const Tokenizer *tokenizer, int64_t id) {
    SCOPED_TEXT(text);
    if (tokenizer) tokenizer_token_bytes(tokenizer, id, &text);
    return value_string(text_get(&text), text.length);
}

// What the script gets of what was said.
static Value said(const Generation *generation, Value value) {
    if (LIKELY(!generation->unknown)) return value;
    if (value.kind == VALUE_STRING) return string_as_measured(value.as.string);
    return value_measured(value.kind, generation->at);
}

static Value scored_value(const Generation *generation, const Scored *scored) {
    const Tokenizer *tokenizer = generation->sequence->network->tokenizer;
    Value row = value_dict();
    dict_set_word(row.as.dict, "id", said(generation, value_int(scored->id)));
    dict_set_word(row.as.dict, "token", said(generation, token_text(tokenizer, scored->id)));
    dict_set_word(row.as.dict, "logprob", said(generation, value_float(scored->logprob)));
    return row;
}

static Value logprobs_value(const Request *request, const Generation *generation) {
    size_t each = (size_t)request->options.logprobs + 1;
    Value list = value_list(generation->count);
    for (size_t i = 0; i < generation->count; i++) {
        const Scored *scored = generation->scored + i * each;
        Value row = scored_value(generation, scored), top = value_list(each);
        for (size_t j = 1; j < each && scored[j].id >= 0; j++)
            list_push(top.as.list, scored_value(generation, &scored[j]));
        dict_set_word(row.as.dict, "top", top);
        list_push(list.as.list, row);
    }
    return list;
}

static Value ids_value(const Generation *generation) {
    Value list = value_list(generation->count);
    for (size_t i = 0; i < generation->count; i++)
        list_push(list.as.list, said(generation, value_int(generation->ids[i])));
    return list;
}

static Value text_value(const Generation *generation) {
    return said(generation, value_string(text_get(&generation->text), generation->text.length));
}

static Value details_value(const Request *request, const Generation *generation) {
    static const char *const finishes[] = {
        [FINISH_END] = "end", [FINISH_STOP] = "stop", [FINISH_LENGTH] = "length"};
    Value answer = value_dict();
    Dict *dict = answer.as.dict;
    dict_set_word(dict, "text", text_value(generation));
    dict_set_word(dict, "ids", ids_value(generation));
    dict_set_word(dict, "finish", said(generation, value_cstring(finishes[generation->finish])));
    dict_set_word(dict, "prompt_tokens", value_int((int64_t)generation->prompt_tokens));
    dict_set_word(dict, "cached_tokens", value_int((int64_t)generation->cached_tokens));
    if (request->options.logprobs >= 0)
        dict_set_word(dict, "logprobs", logprobs_value(request, generation));
    return answer;
}

static Value answer_value(const Request *request, const Generation *generation) {
    if (request->options.logprobs >= 0 || argument(request, DETAILS).as.integer)
        return details_value(request, generation);
    return request->network->tokenizer ? text_value(generation) : ids_value(generation);
}

static Value answers(const Request *request) {
    if (!request->many) return answer_value(request, request->generations[0]);
    Value list = value_list(request->count);
    for (size_t i = 0; i < request->count; i++)
        list_push(list.as.list, answer_value(request, request->generations[i]));
    return list;
}

// --- the builtins

// What is about text needs a vocabulary; the words of its absence are the tokenizer's.
static Status need_tokenizer(const Request *request) {
    Tokenizer *tokenizer;
    if (!request->chats && !given(request, STOP)) return STATUS_OK;
    return model_tokenizer(argument(request, MODEL).as.handle->payload, &tokenizer);
}

static Status open_cache(Request *request) {
    Value cache = argument(request, CACHE);
    if (cache.kind == VALUE_ABSENT || cache.kind == VALUE_NONE) return STATUS_OK;
    if (cache.kind == VALUE_STRING)
        return prompt_cache_open(string_end(cache.as.string)->bytes, request->network,
                                 &request->cache);
    if (cache.kind != VALUE_HANDLE || cache.as.handle->type != &handle_cache)
        return fail_kind("cache", "the name of a folder, or a KVCache", cache);
    request->kept = cache.as.handle->payload;
    return STATUS_OK;
}

// Also of a text that was left: what was computed of it stays.
static void note_kept(const Request *request) {
    if (request->kept && request->generations && request->generations[0])
        sequence_note(request->generations[0]->sequence);
}

static Status keep_all(const Request *request) {
    for (size_t i = 0; request->cache && i < request->count; i++)
        TRY(prompt_cache_store(request->cache, request->generations[i]->sequence));
    return STATUS_OK;
}

static Status run(Request *request) {
    TRY(read_options(request));
    TRY(network_open(request->call->interp, argument(request, MODEL), &request->network));
    TRY(network_need_logits(request->network));
    TRY(need_tokenizer(request));
    TRY(open_cache(request));
    TRY(begin_all(request));
    while (is_going(request)) TRY(generations_step(request->generations, request->count));
    return keep_all(request);
}

static Value generate(Request request) {
    Value result = run(&request) == STATUS_OK ? answers(&request) : value_fail();
    note_kept(&request);
    for (size_t i = 0; i < request.count; i++) generation_free(request.generations[i]);
    free(request.generations);
    free(request.tellers);
    free(request.stops);
    prompt_cache_close(request.cache);
    if (request.network) network_release(request.network);
    return result;
}

Value builtin_generate(BuiltinCall *call) {
    return generate((Request){.call = call});
}

Value builtin_chat(BuiltinCall *call) {
    return generate((Request){.call = call, .chats = true});
}

Value builtin_cache_of(BuiltinCall *call) {
    Network *network;
    KvCache *cache = NULL;
    if (network_open(call->interp, call->arguments[0], &network) != STATUS_OK) return value_fail();
    Status status = sequence_cache_new(network, &cache);
    network_release(network);
    return status == STATUS_OK ? value_handle(&handle_cache, cache) : value_fail();
}

Value builtin_apply_chat_template(BuiltinCall *call) {
    Model *model = call->arguments[0].as.handle->payload;
    Tokenizer *tokenizer;
    SCOPED_TEXT(text);
    TRY_VALUE(model_tokenizer(model, &tokenizer));
    const ChatPrompt prompt = {call->arguments[1], call->arguments[3],
                               call->arguments[2].as.integer != 0};
    Status status = chat_prompt(model, tokenizer, &prompt, &text);
    return status == STATUS_OK ? value_string(text_get(&text), text.length) : value_fail();
}
