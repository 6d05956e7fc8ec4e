// Strongly connected components of a graph.
#ifndef LOGIC_COMPONENTS_H
#define LOGIC_COMPONENTS_H

#include <stdint.h>

// The edges of a node lead to to[first[node]], ... to[first[node + 1] - 1]. Each node gets the
// number of its component, which is above those of the other components that it reaches. How many
// there are.
uint32_t components_find(uint32_t nodes, const uint32_t *first, const uint32_t *to,
                         uint32_t *component);

#endif
