// Places of the protocol (lines and UTF-16 units from 0, uris) and places of ours (bytes, spans).
#ifndef LSP_PLACE_H
#define LSP_PLACE_H

#include <jansson.h>

#include "base/source.h"
#include "base/text.h"

// The byte that a {line, character} means; the nearest one when it is outside the text. `json` may
// be anything.
size_t place_offset(const json_t *json, const char *text, size_t length);
json_t *place_range(Span span);    // {start, end}
json_t *place_location(Span span); // {uri, range}; NULL when the span is in no file
// The file that a uri names; the uri itself when it names none. Free it.
char *place_path(const char *uri);
// A JSON string of text that may not be UTF-8.
json_t *place_text(const char *text, size_t length);

#endif
