/* tl in a C program: a function of C that tl calls, a tensor over an array of C, a function of tl
 * that C calls, an error as a structure, and the ledger.
 *
 *     cc embed.c $(pkg-config --cflags --libs tl) -o embed && ./embed
 */
#include <stdio.h>
#include <stdlib.h>
#include <tl.h>

static void check(tl_runtime *tl, tl_status status) {
    if (status == TL_OK) return;
    fputs(tl_last_error(tl)->text, stderr);
    exit(1);
}

/* clip(x): a number between 0 and 1. */
static tl_status clip(void *context, tl_runtime *tl, tl_value *const *arguments, size_t count,
                      tl_value **result) {
    double number;
    (void)context;
    if (count != 1) return tl_fail(tl, "arity", "clip takes one number", NULL);
    if (tl_to_float(arguments[0], &number) != TL_OK) return TL_FAILED;
    *result = tl_from_float(tl, number < 0 ? 0 : number > 1 ? 1 : number);
    return TL_OK;
}

static const char program[] = "fn score(x: float32[n, 3], weights) {\n"
                              "    clip(mean(x @ weights))\n"
                              "}\n";

int main(void) {
    const tl_error *error;
    tl_runtime *tl = tl_runtime_new("cpu", &error);
    if (!tl) return fprintf(stderr, "%s\n", error->message), 1;

    tl_value *function = tl_from_function(tl, clip, NULL, NULL), *score, *weights, *x, *result;
    check(tl, tl_set(tl, "clip", function));
    check(tl, tl_run_text(tl, "score.tl", program, NULL));
    check(tl, tl_get(tl, "score", &score));
    check(tl, tl_run_text(tl, "weights.tl", "[[0.5], [0.25], [-0.25]]", &weights));

    float numbers[2][3] = {{1, 2, 3}, {2, 0, 1}};
    tl_tensor memory = {
        .dtype = "float32", .rank = 2, .shape = {2, 3}, .strides = {3, 1}, .data = numbers};
    check(tl, tl_from_memory(tl, &memory, NULL, NULL, &x)); /* nothing is copied */

    double number;
    check(tl, tl_call(score, (tl_value *[]){x, weights}, 2, &result));
    check(tl, tl_to_float(result, &number));
    printf("score: %g\n", number);

    if (tl_call(score, (tl_value *[]){x, x}, 2, NULL) != TL_OK) {
        const tl_error *failed = tl_last_error(tl);
        printf("error: %s (%s, line %d): %s\n", failed->kind, failed->file, failed->line,
               failed->message);
    }
    tl_ledger_entry ledger;
    tl_ledger(tl, &ledger);
    printf("%llu bytes of this program are in use\n", (unsigned long long)ledger.borrowed_bytes);

    tl_release(result);
    tl_release(x);
    tl_release(weights);
    tl_release(score);
    tl_release(function);
    tl_runtime_free(tl);
    return 0;
}
