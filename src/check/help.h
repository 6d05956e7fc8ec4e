// The page of a name: what the catalog knows, and the functions and structs of std/.
#ifndef CHECK_HELP_H
#define CHECK_HELP_H

#include "base/text.h"

// STATUS_NAME with a suggestion when nothing has that name.
Status help_page(const char *name, Text *out) MUST_USE;
// The file of std/ that declares a function or a struct of that name; NULL: none does.
const char *help_library_file(const char *name);

#endif
