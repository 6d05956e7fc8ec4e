// A walk comes by every name of a program once, wherever it stands.
#include "outcome.h"
#include "parser/walk.h"

static const char *const sources[] = {
    "d = {\"k\": n_a, \"l\": n_b}\n",
    "[n_a, n_b]\n(n_c, n_d)\n",
    "n_a + n_b and not n_c or -n_d < n_e\n",
    "n_a as float32\n",
    "f\"{n_a} and {n_b:.2}\"\n",
    "[n_a + n_b for i in n_c if n_d]\n",
    "n_a(n_b, k: n_c)\nn_d.f(n_e, k: n_f).g\n",
    "n_a[n_b, n_c:n_d:n_e][n_f]\n",
    "P { x: n_a, y: n_b }\n",
    "let f = fn(a, b = n_a) { n_b }\n",
    "if n_a { n_b } else if n_c { n_d } else { n_e }\n",
    "match n_a { 1 if n_b => n_c, _ => { n_d } }\n",
    "try { n_a } catch e { n_b }\n",
    "while n_a { n_b }\nloop { n_c }\nfor i in n_d { n_e }\n",
    "fn f(a = n_a) { return n_b }\n",
    "with device(n_a) { n_b }\n",
    "learn { objective: n_a, epochs: n_b }\n",
    "struct P { x: int = n_a, y: int = n_b }\n",
    "impl P { fn f(self) { n_a } fn g(self) { n_b } }\n",
    "let (a, b) = n_a\nlet c: int = n_b\nn_c[n_d] = n_e\nn_f += n_g\n",
    "test \"t\" { n_a }\nbench \"b\" { n_b }\nmain { n_c }\n",
};

typedef struct Seen {
    const SourceFile *file;
    char *marks; // how often a name of the tree begins at each byte
} Seen;

static void see(void *context, Node *node) {
    const Seen *seen = context;
    if (node->kind == NODE_NAME) seen->marks[node->span.begin - seen->file->base]++;
}

static void test_every_name_is_passed_once(void **state) {
    (void)state;
    for (size_t row = 0; row < sizeof sources / sizeof *sources; row++) {
        const char *source = sources[row];
        const SourceFile *file;
        assert_int_equal(source_add("t.tl", source, strlen(source), &file), STATUS_OK);
        DiagnosticList diagnostics = {0};
        Program *program = parse_program(file, &diagnostics);
        if (diagnostics.error_count) fail_msg("%s: %s", source, diagnostics.items[0].message);
        Seen seen = {file, calloc(strlen(source), 1)};
        walk_node(&(Walker){.context = &seen, .node = see}, program->top);
        for (const char *at = source; (at = strstr(at, "n_")); at++)
            if (seen.marks[at - source] != 1)
                fail_msg("%s: %.3s is passed %d times", source, at, seen.marks[at - source]);
        free(seen.marks);
        diagnostic_list_free(&diagnostics);
        program_free(program);
        source_reset();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_name_is_passed_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
