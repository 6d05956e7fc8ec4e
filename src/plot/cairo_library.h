// What of cairo is used, loaded at its first use by painter_png.c.
#ifndef PLOT_CAIRO_LIBRARY_H
#define PLOT_CAIRO_LIBRARY_H

#include <cairo.h>

#include "base/status.h"

// clang-format off
#define CAIRO_FUNCTIONS(F)                                                                         \
    F(image_surface_create)                                                                        \
    F(create) F(destroy) F(surface_destroy) F(surface_status) F(surface_write_to_png_stream)       \
        F(status_to_string) F(set_source_rgb) F(paint) F(rectangle) F(fill) F(stroke) F(move_to)   \
            F(line_to) F(arc) F(new_path) F(set_line_width) F(set_line_join) F(select_font_face)   \
                F(set_font_size) F(text_extents) F(show_text) F(save) F(restore) F(rotate)         \
                    F(set_antialias)
// clang-format on

typedef struct CairoLibrary {
#define CAIRO_FIELD(name) __typeof__(cairo_##name) *name;
    CAIRO_FUNCTIONS(CAIRO_FIELD)
#undef CAIRO_FIELD
} CairoLibrary;

// Before the first use.
Status cairo_library_load(void) MUST_USE;
extern CairoLibrary cairo_library;

#endif
