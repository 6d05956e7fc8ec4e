// Chats as prompts.
#ifndef GENERATE_PROMPT_H
#define GENERATE_PROMPT_H

#include "generate/sequence.h"

// The ids of a chat, by the template in the model's file, up to where the answer begins; `tools`:
// what the model may call, or none.
Status network_encode_chat(const Network *network, Value messages, Value tools,
                           TokenIds *out) MUST_USE;

#endif
