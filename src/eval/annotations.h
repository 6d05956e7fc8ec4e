// Annotations at run time: what a parameter, result, field or declaration accepts.
#ifndef EVAL_ANNOTATIONS_H
#define EVAL_ANNOTATIONS_H

#include "eval/code.h"

const Annotation *lower_annotation(Lowering *lowering, const TypeNode *type); // NULL gives NULL
bool annotation_is_void(const Annotation *annotation);
// Parameters and results: rank, dimensions and the family of the dtype must agree. May replace the
// value (an int where a float is declared). `what` is "parameter x of fn f".
Status annotation_check(Frame *frame, const Annotation *annotation, Value *value,
                        const char *what) MUST_USE;
// What just has the kind or the struct type that is written, or is none where it may be: at once.
// False: the others say.
bool annotation_is_met(const Annotation *annotation, Value value);
// Declarations: converts the dtype, and reshapes when the counts agree. Takes the value; the result
// is a new reference or VALUE_FAIL.
Value annotation_convert(Frame *frame, const Annotation *annotation, Value value, const char *what);
// The declared shape of a tensor whose dimensions are all known here.
Status annotation_shape(Frame *frame, const Annotation *annotation, const char *what, Shape *shape,
                        DType *dtype) MUST_USE;
// int, float, bool and string themselves: a rank-0 tensor cast to one becomes a plain value.
bool annotation_is_plain_word(const Annotation *annotation);
bool annotation_is_tensor(const Annotation *annotation);
// The dtype of a rank-0 tensor that stands for one number of the word: float16, int, bool, ...
bool annotation_number_dtype(const Annotation *annotation, DType *dtype);

// How closely a value is what an annotation says, without converting it: -1: it is not; 0: the
// annotation says nothing; more for an exact dtype and for each size that is given.
int annotation_fit(const Annotation *annotation, Value value);

#endif
