// Finds libzip at run time. Knows its names, not what for.
#include "model/zip_library.h"

#include "base/library.h"

ZipLibrary zip_library;

static const LibrarySymbol symbols[] = {
#define ZIP_SYMBOL(name) {"zip_" #name, &zip_library.name},
    ZIP_FUNCTIONS(ZIP_SYMBOL)
#undef ZIP_SYMBOL
};
static Library library = {.file = TL_ZIP_LIBRARY,
                          .purpose = ".npz files",
                          .package = TL_ZIP_PACKAGE,
                          .symbols = symbols,
                          .symbol_count = sizeof symbols / sizeof *symbols};

Status zip_library_load(void) {
    return library_load(&library);
}
