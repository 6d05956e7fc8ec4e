// Modules as they are in the program: differences compress to a third of the words.
#ifndef VULKAN_SPIRV_DIFFERENCES_H
#define VULKAN_SPIRV_DIFFERENCES_H

#include <stddef.h>
#include <stdint.h>

// Makes each operand its difference from the one at the same place of the last instruction with the
// same opcode, and back.
void spirv_to_differences(uint32_t *out, const uint32_t *words, size_t count);
void spirv_from_differences(uint32_t *words, size_t count);

#endif
