// A chat as the text that its model was trained on, by the template in the model's file.
#ifndef CHAT_CHAT_H
#define CHAT_CHAT_H

#include "model/model.h"
#include "model/tokenizer.h"
#include "value/value.h"

typedef struct ChatPrompt {
    Value messages; // a string, which is what the user says, or a list of dictionaries or structs
                    // with role and content
    Value tools;    // a list of what the model may call, or none
    bool answer;    // with what begins the model's answer
} ChatPrompt;

// The template in the model's file; borrowed. STATUS_KEY for a model without one.
Status chat_template(const Model *model, const char **text, size_t *length) MUST_USE;
// Appends the text that it makes of a chat.
Status chat_prompt(const Model *model, const Tokenizer *tokenizer, const ChatPrompt *prompt,
                   Text *out) MUST_USE;

#endif
