// The page to talk on, page.html as it was when the program was built.
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

#include <stddef.h>

extern const unsigned char serve_page[];
extern const size_t serve_page_length;

#endif
