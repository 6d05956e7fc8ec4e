// What the builtins of a runtime keep from call to call.
#ifndef LIBRARY_STATE_H
#define LIBRARY_STATE_H

// builtin_output.c: what was read of standard input and not yet handed out.
typedef struct Input Input;
Input *input_new(void);
void input_free(Input *input);

// builtin_regex.c: patterns that were compiled.
typedef struct Patterns Patterns;
Patterns *patterns_new(void);
void patterns_free(Patterns *patterns);

#endif
