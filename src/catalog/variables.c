// The table of variables.def, and the page of a variable.
#include "catalog/variables.h"

#include <string.h>

const Variable variables[VARIABLE_COUNT] = {
#define VARIABLE(name, form, doc) {#name, form, doc, false, NULL, 0, 0, 0},
#define NUMBER(name, form, minimum, maximum, unset, what, doc)                                     \
    {#name, form, doc, false, what, minimum, maximum, unset},
#define FOR_TESTS(name, minimum, maximum, unset, what, doc)                                        \
    {#name, "n", doc, true, what, minimum, maximum, unset},
#include "catalog/variables.def"
#undef VARIABLE
#undef NUMBER
#undef FOR_TESTS
};

bool variable_append_page(const char *name, Text *out) {
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        const Variable *row = &variables[i];
        if (strcmp(row->name, name) != 0) continue;
        text_format(out, "%s=%s\n    %s\n", row->name, row->form, row->doc);
        if (row->what && row->maximum == INT64_MAX)
            text_format(out, "    n: %s, from %llu\n", row->what, (unsigned long long)row->minimum);
        else if (row->what)
            text_format(out, "    n: %s, from %llu to %llu\n", row->what,
                        (unsigned long long)row->minimum, (unsigned long long)row->maximum);
        text_format(out, "environment variable%s\n", row->for_tests ? ", for tests" : "");
        return true;
    }
    return false;
}
