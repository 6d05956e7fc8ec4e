// A chat as the text that its model was trained on, by the template in the model's file.
#ifndef CHAT_CHAT_H
#define CHAT_CHAT_H

#include "model/model.h"
#include "model/tokenizer.h"
#include "value/value.h"

// Appends the text of the messages: a string, which is what the user says, or a list of
// dictionaries or structs with role and content. `answer`: with what begins the model's answer.
// STATUS_KEY for a model without a template.
Status chat_prompt(const Model *model, const Tokenizer *tokenizer, Value messages, bool answer,
                   Text *out) MUST_USE;

#endif
