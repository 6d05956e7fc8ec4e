// Chats as prompts.
#ifndef GENERATE_PROMPT_H
#define GENERATE_PROMPT_H

#include "generate/sequence.h"

// The ids of a chat, by the template in the model's file, up to where the answer begins.
Status network_encode_chat(const Network *network, Value messages, TokenIds *out) MUST_USE;

#endif
