// Runtimes next to each other: programs on two threads see nothing of each other, and what a
// runtime owned is gone with it.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file_map.h"
#include "base/output.h"
#include "base/source.h"
#include "device/buffer.h"
#include "device/statistics.h"
#include "eval/interp.h"
#include "eval/trace.h"
#include "parser/parser.h"
#include "runtime/runtime.h"
#include "value/heap.h"

#include <cmocka.h>
#undef fail

enum { ROUNDS = 6, LIVES = 1000 };

// A program, and what became of it.
typedef struct Run {
    const char *text;
    InterpOptions options;
    Interp *_Atomic interp; // while it runs
    char *out, *errors;
    Status status;
    uint64_t buffers; // that were left
    size_t objects;
} Run;

// cmocka's assertions are for the thread of the test: mistakes of a program are among its errors.
static Program *load(const char *text) {
    const SourceFile *source;
    DiagnosticList diagnostics = {0};
    if (source_add("program.tl", text, strlen(text), &source) != STATUS_OK) abort();
    Program *program = parse_program(source, &diagnostics);
    if (diagnostics.error_count == 0) check_program(program, &diagnostics);
    diagnostics_show(&diagnostics, SEVERITY_WARNING);
    bool wrong = diagnostics.error_count > 0;
    diagnostic_list_free(&diagnostics);
    if (!wrong) return program;
    program_free(program);
    return NULL;
}

static void run_program(Run *run, Runtime *runtime) {
    Program *program = load(run->text);
    run->status = STATUS_SYNTAX;
    if (!program) return;
    Interp *interp = interp_new(runtime, &run->options);
    run->interp = interp;
    run->status = interp_run(interp, program);
    if (run->status != STATUS_OK) failure_show(interp);
    run->interp = NULL;
    (void)interp_free(interp, 0);
    program_free(program);
}

// All of a run: its runtime, its streams, the program, and the ledger at the end.
static void *live(void *context) {
    Run *run = context;
    size_t out_length, errors_length;
    Runtime *runtime = runtime_new(), *before = runtime_enter(runtime);
    FILE *out = open_memstream(&run->out, &out_length);
    FILE *errors = open_memstream(&run->errors, &errors_length);
    output_redirect(out, errors);
    run_program(run, runtime);
    output_flush();
    Device *device = device_default_opened();
    run->buffers = device ? pool_statistics(device).live_buffers : 0;
    run->objects = heap_object_count();
    fclose(out);
    fclose(errors);
    runtime_enter(before);
    runtime_free(runtime);
    return NULL;
}

static void run_free(Run *run) {
    assert_int_equal(run->buffers, 0);
    assert_int_equal(run->objects, 0);
    free(run->out);
    free(run->errors);
}

static pthread_t start(Run *run) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, live, run), 0);
    return thread;
}

static const char training[] =
    "struct Held { name: string }\n"
    "impl Drop for Held { fn drop(self) { print(\"drop of \" + self.name) } }\n"
    "let held = Held { name: \"A\" }\n"
    "let x = randn([64, 3])\n"
    "let y = x @ [[1.0], [2.0], [3.0]]\n"
    "tensor w: float32[3, 1] learnable = zeros()\n"
    "let result = learn { objective: mse_loss(x @ w, y), optimizer: adam(lr: 0.1), epochs: 60 }\n"
    "print(result.epochs, format(\"{:.6f}\", result.losses[59]))\n"
    "print(dropout(ones([8]), training: true).to_list())\n"
    "for i in 0..2000 { let l = [i, [i, \"x\" + str(i)]]; l.push(l) }\n"
    "print(rand([2]).to_list(), \"a-1-b\".split(\"-\"), \"b22\".find_all(\"[0-9]+\"))\n";

static const char refusing[] =
    "struct Held { name: string }\n"
    "impl Drop for Held { fn drop(self) { print(\"drop of \" + self.name) } }\n"
    "let held = Held { name: \"B\" }\n"
    "fn inner(n) { let a = zeros([n, 4])\n sum(a @ a) }\n"
    "let kept = []\n"
    "for i in 0..300 { kept.push(ones([50 + i]) * i) }\n"
    "print(sum(concat(kept)), rand([2]).to_list())\n"
    "with no_grad { print(try { inner(3 + args().len()) } catch e { e.kind }) }\n"
    "inner(5 + args().len())\n";

static void test_two_programs_at_once(void **state) {
    (void)state;
    Run alone[2] = {{.text = training, .options = {.has_seed = true, .seed = 7, .quiet = true}},
                    {.text = refusing, .options = {.has_seed = true, .seed = 8}}};
    for (int i = 0; i < 2; i++) pthread_join(start(&alone[i]), NULL);
    assert_string_equal(alone[0].errors, "");
    assert_int_equal(alone[0].status, STATUS_OK);
    assert_non_null(strstr(alone[0].out, "drop of A\n"));
    assert_string_equal(alone[0].errors, "");
    assert_non_null(strstr(alone[1].errors, "error[shape]"));
    assert_int_equal(alone[1].status, STATUS_SHAPE);
    assert_non_null(strstr(alone[1].out, "drop of B\n"));
    assert_non_null(strstr(alone[1].errors, "program.tl:5"));
    for (int round = 0; round < ROUNDS; round++) {
        Run both[2] = {{.text = alone[0].text, .options = alone[0].options},
                       {.text = alone[1].text, .options = alone[1].options}};
        pthread_t threads[2] = {start(&both[0]), start(&both[1])};
        for (int i = 0; i < 2; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(both[i].status, alone[i].status);
            assert_string_equal(both[i].out, alone[i].out);
            assert_string_equal(both[i].errors, alone[i].errors);
            run_free(&both[i]);
        }
    }
    for (int i = 0; i < 2; i++) run_free(&alone[i]);
}

static void test_an_interrupt_stops_one(void **state) {
    (void)state;
    Run endless = {.text = "let x = 0.0\nloop { x = sum(ones([100]) * x) }\n"};
    Run other = {.text = "let s = 0\nfor i in 0..300000 { s += i % 7 }\nprint(s)\n"};
    pthread_t threads[2] = {start(&endless), start(&other)};
    Interp *interp;
    while (!(interp = endless.interp)) usleep(100);
    usleep(10000);
    interp_interrupt(interp);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(endless.status, STATUS_INTERRUPT);
    assert_int_equal(other.status, STATUS_OK);
    assert_string_equal(other.out, "899997\n");
    run_free(&endless);
    run_free(&other);
}

static void test_a_thousand_lives(void **state) {
    (void)state;
    for (int i = 0; i < LIVES; i++) {
        Run run = {.text = "let l = [ones([64]), \"a\"]\nl.push(l)\nprint(sum(l[0]))\n"};
        live(&run);
        assert_int_equal(run.status, STATUS_OK);
        assert_string_equal(run.out, "64.0\n");
        run_free(&run);
    }
}

// The runtime that mapped the file hears of bytes that are missing, and no other does.
static void test_missing_bytes_reach_their_runtime(void **state) {
    (void)state;
    char path[] = "/tmp/tl_runtime_XXXXXX";
    int descriptor = mkstemp(path);
    assert_int_equal(ftruncate(descriptor, 1 << 16), 0);
    Runtime *other = runtime_new(), *own = runtime_current;
    FileMap *map;
    assert_int_equal(file_map_open(path, &map), STATUS_OK);
    assert_int_equal(ftruncate(descriptor, 0), 0);
    runtime_enter(other); // reads what the first has mapped
    assert_int_equal(((const volatile uint8_t *)file_map_bytes(map))[5000], 0);
    assert_int_equal(file_map_faults(), STATUS_OK);
    runtime_enter(own);
    assert_int_equal(file_map_faults(), STATUS_IO);
    assert_int_equal(file_map_faults(), STATUS_OK);
    file_map_release(map);
    runtime_free(other);
    close(descriptor);
    unlink(path);
}

static void test_refused_memory_reaches_its_runtime(void **state) {
    (void)state;
    Runtime *other = runtime_new(), *own = runtime_current;
    runtime_enter(other);
    memory_note_refusal(12345);
    runtime_enter(own);
    assert_int_equal(runtime_interrupts(own), 0);
    assert_int_equal(memory_exhausted(), STATUS_OK);
    runtime_enter(other);
    assert_int_equal(runtime_interrupts(other), INTERRUPT_MEMORY);
    assert_int_equal(memory_exhausted(), STATUS_MEMORY);
    assert_string_equal(error_current()->message, "out of memory: the system refused 12345 bytes");
    runtime_enter(own);
    runtime_free(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_programs_at_once), // the collector is started by a thread of it
        cmocka_unit_test(test_an_interrupt_stops_one),
        cmocka_unit_test(test_a_thousand_lives),
        cmocka_unit_test(test_missing_bytes_reach_their_runtime),
        cmocka_unit_test(test_refused_memory_reaches_its_runtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
