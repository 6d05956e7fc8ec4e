// Places in source text as numbers. Every source text that is loaded occupies a range of one 32-bit
// position space, so that a place is 4 bytes wherever it is kept; base/source.h turns it back into
// file, line and column.
#ifndef BASE_ORIGIN_H
#define BASE_ORIGIN_H

#include <stdint.h>

typedef uint32_t SourcePos; // 0: no place

typedef struct Span {
    SourcePos begin, end; // end is one past the last byte
} Span;

// Where a tensor or buffer was made: the expression, and the call that led there (0 at top level).
typedef struct Origin {
    SourcePos at, called_from;
} Origin;

// The origin that whatever is made next in this thread carries. The interpreter keeps it current.
extern _Thread_local Origin origin_current;

#endif
