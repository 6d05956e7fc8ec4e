#include "serve/page.h"

const unsigned char serve_page[] =
#include "serve/page.def"
    ;
const size_t serve_page_length = sizeof serve_page - 1;
