// The head of everything with a reference count that a Value can point to: first member, so that
// retain and release need not know the kind.
#ifndef BASE_COUNTED_H
#define BASE_COUNTED_H

typedef struct Counted {
    int refs;
} Counted;

#endif
