// Finds cairo at run time. Knows its names, not what for.
#include "plot/cairo_library.h"

#include "base/library.h"

CairoLibrary cairo_library;

static const LibrarySymbol symbols[] = {
#define CAIRO_SYMBOL(name) {"cairo_" #name, &cairo_library.name},
    CAIRO_FUNCTIONS(CAIRO_SYMBOL)
#undef CAIRO_SYMBOL
};
static Library library = {.file = "libcairo.so.2",
                          .purpose = ".png pictures",
                          .package = "libcairo2",
                          .symbols = symbols,
                          .symbol_count = sizeof symbols / sizeof *symbols};

Status cairo_library_load(void) {
    return library_load(&library);
}
