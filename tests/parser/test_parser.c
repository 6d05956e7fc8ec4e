// The grammar: source text in, S-expression out. One row a sentence of LANGUAGE.md where possible.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "parser/dump.h"
#include "parser/parser.h"

#include <cmocka.h> // its fail() hides ours

typedef struct Row {
    const char *source, *tree;
} Row;

static void check_row(const Row *row) {
    const SourceFile *file;
    assert_int_equal(source_add("test.tl", row->source, strlen(row->source), &file), STATUS_OK);
    DiagnosticList diagnostics = {0};
    Program *program = parse_program(file, &diagnostics);
    Text out = {0};
    if (diagnostics.count > 0) {
        diagnostic_render(&out, &diagnostics.items[0], false);
        fail_msg("%s\n%s", row->source, text_get(&out));
    }
    NodeList list = program->top->as.block.statements;
    for (size_t i = 0; i < list.count; i++) {
        if (i > 0) text_append_string(&out, " ; ");
        dump_node(&out, list.items[i]);
    }
    if (strcmp(text_get(&out), row->tree) != 0)
        fail_msg("source: %s\n  read: %s\nwanted: %s", row->source, text_get(&out), row->tree);
    text_free(&out);
    diagnostic_list_free(&diagnostics);
    program_free(program);
    source_reset();
}

#define CHECK_ROWS(rows)                                                                           \
    for (size_t row_ = 0; row_ < sizeof(rows) / sizeof(rows)[0]; row_++) check_row(&(rows)[row_])

static void test_precedence(void **state) {
    (void)state;
    static const Row rows[] = {
        {"-2 ** 2", "(- (** 2 2))"},
        {"2 ** 3 ** 2", "(** 2 (** 3 2))"},
        {"2 ** -1", "(** 2 (- 1))"},
        {"2 ** -x ** 2 * 3", "(* (** 2 (- (** x 2))) 3)"},
        {"a - b - c", "(- (- a b) c)"},
        {"a + b * c @ d % e / f", "(+ a (/ (% (@ (* b c) d) e) f))"},
        {"a ⊙ b ⊗ c", "(⊗ (* a b) c)"},
        {"a * b as int", "(* a (as b int))"},
        {"-x as int as float", "(as (as (- x) int) float)"},
        {"x as float32[2, 3]", "(as x float32[2,3])"},
        {"x as int < y", "(< (as x int) y)"},
        {"not a == b", "(! (== a b))"},
        {"!a == b", "(== (! a) b)"},
        {"not not a and b or c", "(or (and (! (! a)) b) c)"},
        {"a || b && c", "(or a (and b c))"},
        {"a ≈ b", "(≈ a b)"},
        {"a in b and c not in d", "(and (in a b) (not in c d))"},
        {"0..n - 1", "(.. 0 (- n 1))"},
        {"0..=n == r", "(== (..= 0 n) r)"},
        {"(a < b) < c", "(< (< a b) c)"},
        {"-f(x)[0].y ** 2", "(- (** (.y (index (call f x) 0)) 2))"},
        {"(a + b).shape()", "(.shape() (+ a b))"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"- 5", "(- 5)"},
        {"x == not y", "(== x (! y))"},
    };
    CHECK_ROWS(rows);
}

static void test_primaries(void **state) {
    (void)state;
    static const Row rows[] = {
        {"[1, 2.0, \"a\", true, none,]", "(list 1 2f \"a\" true none)"},
        {"[]", "(list)"},
        {"x = ()", "(= x (tuple))"},
        {"x = (a,)", "(= x (tuple a))"},
        {"x = (a, b)", "(= x (tuple a b))"},
        {"x = ((a))", "(= x a)"},
        {"C[i, k'.] = A[i, j] B[j, k'] / (c) (d)",
         "(= (index C i k'.) (* (/ (* (index A i j) (index B j k')) c) d))"},
        {"P[x] max= F[x+1] 2", "(max= (index P x) (* (index F (+ x 1)) 2))"},
        {"s <- A[i] -B[i]", "(<-= s (- (index A i) (index B i)))"},
        {"x[0] = f (2) [1]", "(= (index x 0) (index (call f 2) 1))"},
        {"x = {}", "(= x (dict))"},
        {"{}", "(block)"},
        {"{ a }", "(block a)"},
        {"f({})", "(call f (dict))"},
        {"x = {\"a\": 1, b: 2, in: 3, match: 4,\n -1: 5,\n}",
         "(= x (dict \"a\": 1 \"b\": 2 \"in\": 3 \"match\": 4 (- 1): 5))"},
        {"x = {f(a)[1]: 2}", "(= x (dict (index (call f a) 1): 2))"},
        {"x = { let a = 1; a }", "(= x (block (let a 1) a))"},
        {"x = { tensor w: float32[2]; w }", "(= x (block (tensor w: float32[2]) w))"},
        {"x = { a\n b }", "(= x (block a b))"},
        {"x = { a = 1; a }", "(= x (block (= a 1) a))"},
        {"[f(x) for x in xs if c]", "(each (call f x) x xs c)"},
        {"[a for (a, b) in xs]", "(each a (tuple a b) xs)"},
        {"f(a, 1, dim: 1, x = 2)", "(call f a 1 dim: 1 x: 2)"},
        {"f(in: 1, if: 2)", "(call f in: 1 if: 2)"},
        {"f(a == b)", "(call f (== a b))"},
        {"x.in.match(1).f", "(.f (.match() (.in x) 1))"},
        {"m.blk.3.attn_q.weight", "(.weight (.attn_q (.3 (.blk m))))"},
        {"m.blk[3].w", "(.w (index (.blk m) 3))"},
        {"x.0.1.f()", "(.f() (.1 (.0 x)))"},
        {"f(x).0", "(.0 (call f x))"},
        {"1.abs()", "(.abs() 1)"},
        {"x[1]", "(index x 1)"},
        {"x[1:3, :, ..., none, -1, a:, :b, a:b:c, ::2, a::2, ::-1]",
         "(index x 1:3 : ... none (- 1) a: :b a:b:c ::2 a::2 ::(- 1))"},
        {"x[a::b]", "(index x a::b)"},
        {"x[A::f(1)]", "(index x (call (:: A f) 1))"},
        {"x[0..3, 1..=2]", "(index x 0:3 (..= 1 2))"},
        {"x[a > 0]", "(index x (> a 0))"},
        {"f32::zeros([2,3])", "(call (:: f32 zeros) (list 2 3))"},
        {"Box<int32>::new()", "(call (:: Box<int32> new))"},
        {"x = Box<float16[?, n]> { v: 1 }", "(= x (new Box<float16[?,n]> v: 1))"},
        {"x = Point { x: 1.0, y: 2 }.x", "(= x (.x (new Point x: 1f y: 2)))"},
        {"x = Point {}", "(= x (new Point))"},
        {"x = a < b", "(= x (< a b))"},
        {"f(a < b, c > d)", "(call f (< a b) (> c d))"},
        {"fn(x) { x * 2 }(3)", "(call (fn (x) (block (* x 2))) 3)"},
        {"map(fn(x: int, y = 2) -> int {\n let z = x\n z }, xs)",
         "(call map (fn (x: int y = 2) -> int (block (let z x) z)) xs)"},
        {"f\"loss {loss:.3} at {i}{{}}\"", "(f \"loss \" loss :.3 \" at \" i \"{}\")"},
        {"f\"{d[\"a\"]} {f\"{x}\"}{ {\"k\": 1}[\"k\"] :>8}\"",
         "(f \"\" (index d \"a\") \" \" (f \"\" x \"\") \"\" (index (dict \"k\": 1) \"k\") :>8 "
         "\"\")"},
        {"f\"plain\"", "(f \"plain\")"},
        {"f\"{A::b(x: 1)}\"", "(f \"\" (call (:: A b) x: 1) \"\")"},
        {"r\"a\\n\"", "\"a\\\\n\""},
    };
    CHECK_ROWS(rows);
}

static void test_lines(void **state) {
    (void)state;
    static const Row rows[] = {
        {"a\nb;c", "a ; b ; c"},
        {"a\n+ b\n* c", "(+ a (* b c))"},
        {"a +\n b", "(+ a b)"},
        {"a\n- b", "a ; new-start:(- b)"},
        {"a\n(b, c)", "a ; new-start:(tuple b c)"},
        {"a\n[b]", "a ; new-start:(list b)"},
        {"a\n[b].f()", "a ; (.f() (list b))"},
        {"x\n.y\n.z()", "(.z() (.y x))"},
        {"a\nand b\nor c\nin d\nas int", "(or (and a b) (in c (as d int)))"},
        {"a\n&& b\n|| c\n** d\n@ e", "(or (and a b) (@ (** c d) e))"},
        {"a\n== b", "(== a b)"},
        {"(a\n- b\n(c))", "(- a (call b c))"},
        {"[1\n,2\n]", "(list 1 2)"},
        {"f(fn(x) {\n a\n - b\n})", "(call f (fn (x) (block a new-start:(- b))))"},
        {"x =\n 1", "(= x 1)"},
        {"let x: T\nlet y =\n\n 2", "(let x: T) ; (let y 2)"},
        {"if a { b }\nelse { c }", "(if a (block b) (block c))"},
        {"if a\n{ b }", "(if a (block b))"},
        {"try { a }\ncatch e { b }", "(try (block a) e (block b))"},
        {"let (a, b): (int, T?) = e", "(let (tuple a b): (tuple int T?) e)"},
        {"let x = try { a } catch { b }", "(let x (try (block a) (block b)))"},
        {"fn f() { return\n 1 }", "(fn f () (block (return) 1))"},
        {"fn f() { return 1 }", "(fn f () (block (return 1)))"},
        {"x = Point {\n x: 1,\n y: 2\n}", "(= x (new Point x: 1 y: 2))"},
        {"if a { b } c", "(if a (block b)) ; c"},
        {"a // comment\n/* b\n */ c", "a ; c"},
        {"not\na", "(! a)"},
        {"a\nnot b", "a ; (! b)"},
    };
    CHECK_ROWS(rows);
}

static void test_statements(void **state) {
    (void)state;
    static const Row rows[] = {
        {"let x: float32[2, ?, n] = e", "(let x: float32[2,?,n] e)"},
        {"let (q, (k, _)) = f(x)", "(let (tuple q (tuple k _)) (call f x))"},
        {"a, b = b, a", "(= (tuple a b) (tuple b a))"},
        {"(a, x[1].y) = t", "(= (tuple a (.y (index x 1))) t)"},
        {"a, b = f(x)", "(= (tuple a b) (call f x))"},
        {"x := 1", "(:= x 1)"},
        {"x += 1; x -= 1; x *= 1; x /= 1; x @= y; x **= 2; x %= 3",
         "(+= x 1) ; (-= x 1) ; (*= x 1) ; (/= x 1) ; (@= x y) ; (**= x 2) ; (%= x 3)"},
        {"x[1:3, :].y[m] = v", "(= (index (.y (index x 1:3 :)) m) v)"},
        {"f(x).y = 1", "(= (.y (call f x)) 1)"},
        {"if a { 1 } else if b { 2 } else { 3 }", "(if a (block 1) (if b (block 2) (block 3)))"},
        {"let x = if c { 1 } else { 2 }", "(let x (if c (block 1) (block 2)))"},
        {"while i < n { i = i + 1 }", "(while (< i n) (block (= i (+ i 1))))"},
        {"loop { break; continue }", "(loop (block (break) (continue)))"},
        {"for x in 0..n { }", "(for x (.. 0 n) (block))"},
        {"for i, x in xs { }", "(for i, x xs (block))"},
        {"for i, (a, b) in xs { }", "(for i, (tuple a b) xs (block))"},
        {"for k in {\"a\": 1} { }", "(for k (dict \"a\": 1) (block))"},
        {"if (Point { x: 1 }) == p { }", "(if (== (new Point x: 1) p) (block))"},
        {"if p { x }", "(if p (block x))"},
        {"match x { 1 | 2 => a, -3..=5 if b => { c } 1.5..2.5 => d\n _ => e }",
         "(match x [(| 1 2) => a] [(..= -3 5) if b => (block c)] [(.. 1.5f 2.5f) => d] [_ => e])"},
        {"match x { P { a: 0, b, .. } => 1, (n, _) => return 2, \"s\" => x = 3, none => {} }",
         "(match x [(P a: 0 b: b ..) => 1] [(tuple n _) => (block (return 2))] "
         "[\"s\" => (block (= x 3))] [none => (block)])"},
        {"let x = match y {\n true => 1,\n false => 2,\n}",
         "(let x (match y [true => 1] [false => 2]))"},
        {"match x {}", "(match x)"},
        {"match x { 1 => {\"a\": 2}, 2 => {\n a\n b } 3 => {} }",
         "(match x [1 => (dict \"a\": 2)] [2 => (block a b)] [3 => (block)])"},
        {"with buffer b { x }", "(with buffer b (block x))"},
        {"with device(\"cpu\") { }", "(with device \"cpu\" (block))"},
        {"with no_grad { }", "(with no_grad (block))"},
        {"tensor w: float16[3, n] learnable = e", "(tensor w: float16[3,n] learnable e)"},
        {"tensor w: float32[3.0]", "(tensor w: float32[3])"},
    };
    CHECK_ROWS(rows);
}

static void test_declarations(void **state) {
    (void)state;
    static const Row rows[] = {
        {"fn f(x: float32[?, d], b, c = 3,) -> float32[n, m] { x }",
         "(fn f (x: float32[?,d] b c = 3) -> float32[n,m] (block x))"},
        {"fn f(f: fn, t: (int, T?)?) -> void { }",
         "(fn f (f: fn t: (tuple int T?)?) -> void (block))"},
        {"fn f<T, U>(x: T) -> U { x }", "(fn f<T U> (x: T) -> U (block x))"},
        {"fn f() { fn g() { 1 }\n g() }", "(fn f () (block (fn g () (block 1)) (call g)))"},
        {"struct P<T, U> { x: T, y: float32[2, 2] learnable = e\n z: Box<U> }",
         "(struct P<T U> x: T y: float32[2,2] learnable = e z: Box<U>)"},
        {"struct E {}", "(struct E)"},
        {"impl<T> P<T> { fn new(x: T) -> P<T> { P<T> { x: x } }\n fn get(self) { self.x } }",
         "(impl P<T> (fn new (x: T) -> P<T> (block (new P<T> x: x))) "
         "(fn get (self) (block (.x self))))"},
        {"impl P<float16[?, ?]> { }", "(impl P<float16[?,?]>)"},
        {"impl P { fn match(self) { self.if() }\n fn let() { P::as() } }",
         "(impl P (fn match (self) (block (.if() self))) (fn let () (block (call (:: P as)))))"},
        {"impl Drop for m.P { fn drop(self) { } }", "(impl Drop for m.P (fn drop (self) (block)))"},
        {"impl m.P<m.Q> { }", "(impl m.P<m.Q>)"},
        {"fn f(p: m.P, q: (m.P?, Box<m.Q>)) -> m.P { m.Box<m.P>::new(m.Box<int> { x: 1 }) }",
         "(fn f (p: m.P q: (tuple m.P? Box<m.Q>)) -> m.P "
         "(block (call (:: m.Box<m.P> new) (new m.Box<int> x: 1))))"},
        {"match p { m.P { x, .. } => x }", "(match p [(m.P x: x ..) => x])"},
        {"impl Drop for P { fn drop(self) { } }", "(impl Drop for P (fn drop (self) (block)))"},
        {"import \"a/b.tl\"\nimport \"x.tl\" as m", "(import \"a/b.tl\") ; (import \"x.tl\" as m)"},
        {"main { a }", "(section main (block a))"},
        {"test \"a b\" { }\nbench c { }", "(test a b (block)) ; (bench c (block))"},
        {"main { bench x { } }", "(section main (block (bench x (block))))"},
        {"learn {\n pred := x @ W\n objective: mean(pred), optimizer: adam(lr: 0.01)\n"
         " batch: 32 of (x, y), shuffle: true\n}",
         "(learn objective: (call mean pred) optimizer: (call adam lr: 0.01f) "
         "batch: 32 of (tuple x y) shuffle: true (block (:= pred (@ x W))))"},
        {"let r = learn { epochs: 2 }", "(let r (learn epochs: 2 (block)))"},
        {"let r = learn { k := 1\n epochs: 2 }", "(let r (learn epochs: 2 (block (:= k 1))))"},
    };
    CHECK_ROWS(rows);
}

// Words that begin declarations are names everywhere else.
static void test_contextual_words(void **state) {
    (void)state;
    static const Row rows[] = {
        {"embedding(table, ids)", "(call embedding table ids)"},
        {"learnable(x)", "(call learnable x)"},
        {"tensor(xs)", "(call tensor xs)"},
        {"fn f(tensor, test) { tensor + test }", "(fn f (tensor test) (block (+ tensor test)))"},
        {"let main = 1; main + 2", "(let main 1) ; (+ main 2)"},
        {"main()", "(call main)"},
        {"x.forward(y)", "(.forward() x y)"},
        {"import = 3; struct = 4; impl = 5; with = 6; learn = 7",
         "(= import 3) ; (= struct 4) ; (= impl 5) ; (= with 6) ; (= learn 7)"},
        {"query = relation + entity * program", "(= query (+ relation (* entity program)))"},
        {"letter = breaker + inv_freq + format + index",
         "(= letter (+ (+ (+ breaker inv_freq) format) index))"},
        {"why(x); infer(y); retract[1]", "(call why x) ; (call infer y) ; (index retract 1)"},
        {"πx = λ_1 + 数", "(= πx (+ λ_1 数))"},
        {"if learn { a }", "(if learn (block a))"},
        {"test\n{ a }", "test ; (block a)"},
    };
    CHECK_ROWS(rows);
}

static void test_spans(void **state) {
    (void)state;
    const char *source = "let y = (a + b).f(x @ W)[1]";
    const SourceFile *file;
    assert_int_equal(source_add("test.tl", source, strlen(source), &file), STATUS_OK);
    DiagnosticList diagnostics = {0};
    Program *program = parse_program(file, &diagnostics);
    const Node *value = program->top->as.block.statements.items[0]->as.let.value;
    size_t length;
    const char *text = source_text(value->span, &length);
    assert_int_equal(length, 19);
    assert_memory_equal(text, "(a + b).f(x @ W)[1]", length);
    const Node *call = value->as.index.object;
    text = source_text(call->as.method.arguments[0].value->span, &length);
    assert_memory_equal(text, "x @ W", 5);
    text = source_text(call->as.method.arguments[0].value->op_span, &length);
    assert_memory_equal(text, "@", length);
    text = source_text(call->as.method.arguments_span, &length);
    assert_memory_equal(text, "(x @ W)", 7);
    program_free(program);
    source_reset();
}

static void test_incomplete(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool incomplete;
    } rows[] = {{"", false},         {"f(1", true},     {"f(1)", false},   {"fn f() {", true},
                {"\"abc", true},     {"/* a", true},    {"f\"{x", true},   {"f\"a", true},
                {"x = [1,\n", true}, {"\"(\"", false},  {"// (", false},   {"f(]", true},
                {"}", false},        {"1 +", true},     {"x =\n", true},   {"1 + // one", true},
                {"f(1).", true},     {"not", true},     {"x as", true},    {"1;", false},
                {"0..", true},       {"x = 1.", false}, {"return", false}, {"{ } else", true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (parse_is_incomplete(rows[i].text, strlen(rows[i].text)) != rows[i].incomplete)
            fail_msg("%s", rows[i].text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precedence),   cmocka_unit_test(test_primaries),
        cmocka_unit_test(test_lines),        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_declarations), cmocka_unit_test(test_contextual_words),
        cmocka_unit_test(test_spans),        cmocka_unit_test(test_incomplete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
