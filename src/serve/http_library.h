// What of libmicrohttpd is used, loaded at its first use. Only http.c includes it.
#ifndef SERVE_HTTP_LIBRARY_H
#define SERVE_HTTP_LIBRARY_H

#include <microhttpd.h>

#include "base/status.h"

// clang-format off
#define HTTP_FUNCTIONS(F)                                                                          \
    F(start_daemon)                                                                                \
    F(stop_daemon)                                                                                 \
    F(run_wait)                                                                                    \
    F(get_daemon_info)                                                                             \
    F(get_connection_info)                                                                         \
    F(lookup_connection_value)                                                                     \
    F(queue_response) F(suspend_connection) F(resume_connection) F(add_response_header)            \
        F(create_response_from_buffer) F(create_response_from_callback) F(destroy_response)
// clang-format on

typedef struct HttpLibrary {
#define HTTP_FIELD(name) __typeof__(MHD_##name) *name;
    HTTP_FUNCTIONS(HTTP_FIELD)
#undef HTTP_FIELD
} HttpLibrary;

// Before the first use.
Status http_library_load(void) MUST_USE;
extern HttpLibrary http_library;

#endif
