// Finds libmicrohttpd at run time. Knows its names, not what for.
#include "serve/http_library.h"

#include "base/library.h"

HttpLibrary http_library;

static const LibrarySymbol symbols[] = {
#define HTTP_SYMBOL(name) {"MHD_" #name, &http_library.name},
    HTTP_FUNCTIONS(HTTP_SYMBOL)
#undef HTTP_SYMBOL
};
static Library library = {.file = "libmicrohttpd.so.12",
                          .purpose = "servers",
                          .package = "libmicrohttpd12",
                          .symbols = symbols,
                          .symbol_count = sizeof symbols / sizeof *symbols};

Status http_library_load(void) {
    return library_load(&library);
}
