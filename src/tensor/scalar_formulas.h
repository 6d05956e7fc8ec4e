// The body of scalar_float.c and scalar_integer.c: a function for each formula of maps.def that
// fits the type, and the table of them. The includer defines real, the words of formulas, TABLE,
// its declaration, and which of MAP1F, MAP1I, MAP2F and MAP2I are MAP1 and MAP2 to it.
#define FORMULA(code, formula)                                                                     \
    static real map_##code(real x, real y, real z) {                                               \
        (void)x, (void)y, (void)z;                                                                 \
        return formula;                                                                            \
    }
#define MAP1(code, formula, ...) FORMULA(code, formula)
#define MAP2(code, formula, ...) FORMULA(code, formula)
#define MAP3(code, formula, ...) FORMULA(code, formula)
#include "catalog/maps.def"
#undef MAP1
#undef MAP2
#undef MAP3

#define MAP1(code, formula, ...) [MAP_##code] = map_##code,
#define MAP2 MAP1
#define MAP3 MAP1
TABLE = {
#include "catalog/maps.def"
};
