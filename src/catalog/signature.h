// Reads signature strings: "softmax(x: tensor, dim: int = -1) -> tensor".
#ifndef CATALOG_SIGNATURE_H
#define CATALOG_SIGNATURE_H

#include "catalog/catalog.h"

// STATUS_FORMAT says what is wrong with the text and where.
Status signature_parse(const char *text, Signature *out) MUST_USE;

#endif
