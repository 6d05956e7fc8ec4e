// A row of linear attention, for both widths of numbers.
#include "device/cpu/linear_attention.h"

#define Real float
#define LOOP(name) name##_narrow
#include "device/cpu/simd/linear_attention_loops.h"
#undef Real
#undef LOOP

#define Real double
#define LOOP(name) name##_wide
#include "device/cpu/simd/linear_attention_loops.h"

LinearStep ISA(linear_attention_step)(bool wide) {
    return wide ? step_wide : step_narrow;
}
