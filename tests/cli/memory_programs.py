"""Programs drawn at random whose sizes follow from their text; numbers that only a run knows decide nothing.

What tl check --memory foretells of them is what a run takes, to the byte."""
import random

ONE = ("relu abs sign square exp expm1 sin cos tanh erf floor round sigmoid log_sigmoid silu softplus mish hardswish gelu "
       "elu leaky_relu step isnan isfinite logical_not").split()
TWO = "add sub mul div minimum maximum pow atan2 eq lt ge approx_equal logical_and swiglu fused_add_relu fused_mul_relu".split()
DTYPES = "float32 float32 float32 float64 float16 bfloat16 int64 int32 uint8 bool".split()
OPTIMIZERS = ["sgd(lr: 0.01)", "sgd(lr: 0.01, momentum: 0.9)", "sgd(lr: 0.01, momentum: 0.9, nesterov: true)", "adam(lr: 0.01)",
              "adam(lr: 0.01, amsgrad: true)", "adamw(lr: 0.01)", "rmsprop(lr: 0.01)", "adagrad(lr: 0.01)", "lion(lr: 0.001)"]
SCHEDULERS = ["cosine()", "step(step_size: 1)", "exponential()", "linear()", "warmup_cosine()"]
BEGIN = "".join(f'import "std/{name}.tl"\n' for name in "layers recurrent losses attention windows data metrics".split()) + "seed(1)\n"


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.shapes, self.count = [], {}, 0

    # --- names and shapes ---

    def name(self, letter="v"):
        self.count += 1
        return f"{letter}{self.count}"

    def size(self, *of):
        return self.random.choice(of or (1, 3, 16, 33, 128, 200))

    def some(self, *of):
        return self.random.choice(of)

    def line(self, *lines):
        self.lines += lines

    def add(self, shape, expression):
        name = self.name()
        self.line(f"let {name} = {expression}")
        self.shapes[name] = list(shape)
        return name

    def pick(self, rank=None):
        names = [n for n, s in self.shapes.items() if rank is None or len(s) == rank]
        return self.some(*names) if names else self.create(rank)

    def floats(self, rank=None):
        """The expression of a float32 tensor, and its shape."""
        x = self.pick(rank)
        return f"({x} as float32)", self.shapes[x]

    def create(self, rank=None):
        rank = rank or self.random.randint(1, 3)
        shape = [self.size(*((1, 3, 16, 33) if rank > 3 else ())) for _ in range(rank)]
        made = self.some("zeros({})", "ones({})", "rand({})", "randn({})", "full({}, 2)", "randint(0, 5, {})",
                         "uniform(-1.0, 2.0, {})", "bernoulli(0.5, {})", f"zeros({{}}, dtype: {self.some(*DTYPES)})")
        return self.add(shape, made.format(shape))

    def numbers(self):
        n = self.size(1, 7, 100, 3000)
        shape, expression = self.some(([n], f"arange({n})"), ([n], f"linspace(0, 1, {n})"), ([100, 100], "eye(100)"),
                                      ([n, 16], f"one_hot(randint(0, 16, [{n}]), 16)"), ([90, 90], "causal_mask(90)"),
                                      ([n, 12], f"positional_encoding({n}, 12)"), ([2, 3], "tensor([[1, 2, 3], [4, 5, 6]])"),
                                      ([n], f"tensor([i * 0.5 for i in 0..{n}])"), ([n, 30], f"rand_like(ones([{n}, 30]))"),
                                      ([5, n], f"padding_mask(tensor([1, 1, 0, 1, 1]), {n})"))
        self.add(shape, expression)

    # --- operations ---

    def elementwise(self):
        x, shape = self.floats()
        word = self.some("{} * 2.0 + 1.0", "exp(-abs({}))", "tanh({}) - {}", "sqrt({} * {} + 1.0)", "clamp({}, -1.0, 1.0)",
                         "where({} > 0.5, {}, 0.0)", "{} ** 2", "logical_or({} > 0.0, {} < 1.0)", "masked_fill({}, {} > 0.5, 7.0)",
                         f"{{}} as {self.some(*DTYPES)}", f"{self.some(*ONE)}({{}})", f"{self.some(*TWO)}({{}}, {{}})",
                         "dropout({}, 0.5, training: true)", "fused_affine({}, 2.0, 1.0)", "clone({})", "bit_xor({} as int32, 3)",
                         "floor_div({}, 2.0)", "mod({}, 3.0)")
        self.add(shape, word.replace("{}", x))

    def broadcast(self):
        x, shape = self.floats()
        if not shape:
            return
        other = [self.some(1, s) for s in shape][self.random.randrange(len(shape)):]
        self.add(shape, f"{x} {self.some('+', '*', '-', '/')} randn({other})")

    def product(self):
        x, (m, k) = self.floats(2)
        n = self.size(1, 7, 64, 130)
        shape, expression = self.some(
            ([m, n], f"{x} @ randn([{k}, {n}])"), ([m, n], f"linear({x}, randn([{n}, {k}]), randn([{n}]))"),
            ([m], f"{x} @ randn([{k}])"), ([m, m], f"{x} @ transpose({x})"), ([k, k], f"transpose({x}) @ {x}"),
            ([m, n], f"einsum(\"ij,jk->ik\", {x}, randn([{k}, {n}]))"), ([m], f"einsum(\"ij,ij->i\", {x}, {x})"),
            ([k, m], f"einsum(\"ij->ji\", {x})"), ([m, n], f"fused_gelu_linear({x}, randn([{k}, {n}]), randn([{n}]))"),
            ([3, m, n], f"bmm(stack({x}, {x}, {x}), randn([3, {k}, {n}]))"), ([m, k, n], f"einsum(\"ij,k->ijk\", {x}, randn([{n}]))"),
            ([m, n], f"({x} as float16) @ (randn([{k}, {n}]) as float16)"), ([m, n], f"({x} as float64) @ (randn([{k}, {n}]) as float64)"),
            ([4, m, n], f"randn([4, {m}, {k}]) @ randn([{k}, {n}])"))
        self.add(shape, expression)

    def reduction(self):
        x, shape = self.floats()
        if not shape:
            return
        word = self.some("sum", "mean", "max", "min", "std", "var", "prod", "any", "all", "argmax", "argmin", "median",
                         "logsumexp", "norm")
        dim = self.random.randrange(len(shape))
        rest = [s for i, s in enumerate(shape) if i != dim]
        if word == "norm":
            self.add(rest, f"norm({x}, 2.0, dim: {dim})")
        elif self.some(True, True, False):
            self.add(rest, f"{word}({x}, {dim})")
        else:
            self.add(shape[:dim] + [1] + shape[dim + 1:], f"{word}({x}, {dim}, keepdim: true)")

    def rearrangement(self):
        x = self.pick(2)
        m, n = self.shapes[x]
        f = f"({x} as float32)"
        shape, expression = self.some(
            ([n, m], f"transpose({x})"), ([m * n], f"reshape({x}, [{m * n}])"), ([2 * m, n], f"concat({x}, {x}, 0)"),
            ([m, n], f"softmax({f}, 1)"), ([m, n], f"log_softmax({f}, 0)"), ([m, n], f"sort({x}, 1)"), ([m, n], f"argsort({f}, 0)"),
            ([m, n], f"cumsum({f}, 1)"), ([m, n], f"cumprod({f}, 0)"), ([(m + 1) // 2, n], f"{x}[::2]"), ([m, n], f"{x}[::-1]"),
            ([m, n, 1], f"unsqueeze({x}, 2)"), ([3, n], f"{x}[tensor([0, 0, -1])]"), ([m, n], f"layer_norm({f})"),
            ([m, n], f"rms_norm({f}, randn([{n}]))"), ([m, n], f"batch_norm({f})"), ([m, n], f"tril({f})"), ([m + 2, n + 2], f"pad({f}, 1)"),
            ([m, n], f"roll({x}, 1)"), ([m, n], f"flip({x})"), ([2 * m, 3 * n], f"tile({x}, [2, 3])"), ([2 * m, n], f"repeat({x}, 2, 0)"),
            ([m, n], f"split({x}, 2)[0] + {x}" if m == 1 else f"contiguous({x})"), ([2, m, n], f"stack({x}, {x})"),
            ([5, m, n], f"broadcast_to({x}, [5, {m}, {n}])"), ([m], f"{x}[:, 0]"), ([n], f"{x}[-1]"), ([m, n], f"{x}[:, ::-1]"),
            ([4, n], f"gather({f}, 0, randint(0, {m}, [4, {n}]))"), ([m, n], f"scatter_add({f}, 0, randint(0, {m}, [7, {n}]), ones([7, {n}]))"),
            ([m, n], f"scatter({f}, 0, randint(0, {m}, [2, {n}]), ones([2, {n}]))"), ([9, n], f"index_select({x}, 0, randint(0, {m}, [9]))"),
            ([8], f"take({x}, randint(0, {m * n}, [8]))"), ([6, n], f"embedding({f}, randint(0, {m}, [6]))"),
            ([m, 1], f"topk({f}, 1)[0]"), ([m, n], f"normalize_features({f})"), ([m, n], f"permute({x}, [1, 0]).T"))
        self.add(shape, expression)

    def convolution(self):
        b, c, h = self.size(1, 3), self.size(1, 4), self.size(8, 30)
        x = self.add([b, c, h, h], f"randn([{b}, {c}, {h}, {h}])")
        half = h // 2
        shape, expression = self.some(
            ([b, 5, h, h], f"conv2d({x}, randn([5, {c}, 3, 3]), padding: 1)"), ([b, 5, half, half], f"conv2d({x}, randn([5, {c}, 2, 2]), stride: 2)"),
            ([b, c, half, half], f"max_pool2d({x}, 2)"), ([b, c, half, half], f"avg_pool2d({x}, 2)"),
            ([b, 6, h * h], f"conv1d(reshape({x}, [{b}, {c}, {h * h}]), randn([6, {c}, 3]), randn([6]), padding: 1)"),
            ([b, c, h, h], f"group_norm({x}, 1)"))
        self.add(shape, expression)

    def attention(self):
        n, heads, d = self.size(1, 16, 100), 4, self.size(16, 32)
        q = self.add([2, n, heads, d], f"randn([2, {n}, {heads}, {d}])")
        expression = self.some(f"attention({q}, {q}, {q})", f"attention({q}, {q}, {q}, causal: true)", f"rope({q})",
                               f"attention({q}, {q}, {q}, mask: causal_mask({n}))",
                               f"grad(fn(x) {{ sum(attention(x, x, x, causal: true) ** 2) }}, {q})")
        self.add([2, n, heads, d], expression)

    def decomposition(self):
        n = self.size(3, 20, 150)
        a = self.add([n, n], f"randn([{n}, {n}])")
        shape, expression = self.some(
            ([n, n], f"inv({a} + eye({n}) * 50.0)"), ([], f"det({a})"), ([n], f"solve({a} + eye({n}) * 50.0, ones([{n}]))"),
            ([n, n], f"cholesky({a} @ transpose({a}) + eye({n}) * 50.0)"), ([n, n], f"qr({a})[0]"), ([n], f"svd({a})[1]"),
            ([n], f"eigh({a} + transpose({a}))[0]"), ([], f"trace({a})"), ([n], f"diag({a})"), ([n, n, n], f"outer({a}, ones([{n}]))"))
        if n < 150 or len(shape) < 3:
            self.add(shape, expression)

    def loss(self):
        n, c = self.size(1, 16, 400), self.size(2, 10, 300)
        x = self.add([n, c], f"randn([{n}, {c}])")
        ids = f"randint(0, {c}, [{n}])"
        expression = self.some(f"cross_entropy({x}, {ids})", f"cross_entropy({x}, {ids}, label_smoothing: 0.1)", f"mse_loss({x}, {x} * 2.0)",
                               f"huber_loss({x}, ones([{n}, {c}]))", f"binary_cross_entropy({x}, ({x} > 0.0) as float32)",
                               f"kl_div(log_softmax({x}), softmax({x} * 2.0))", f"nll_loss(log_softmax({x}), {ids})",
                               f"mean(cosine_similarity({x}, {x} * 2.0))", f"focal_loss({x}, ({x} > 0.0) as float32)")
        self.add([], expression)

    # --- changes ---

    def release(self):
        if len(self.shapes) < 2:
            return
        x = self.pick()
        self.line(f"{x} = none")
        del self.shapes[x]

    def change(self):
        x = self.pick(2)
        m, n = self.shapes[x]
        self.line(self.some(f"{x}[0] = 1", f"{x}[:, 0] = 0", f"{x}[{m - 1}, {n - 1}] = 1", f"{x}[::2] = zeros([{(m + 1) // 2}, {n}])",
                            f"{x}[tensor([0, {m - 1}])] = 1", f"{x} = {x} + {x}", f"{x}[{x} > 0] = 0"))

    def alias(self):
        """A view that outlives its tensor, or a second name that outlives the first."""
        x = self.create(2)
        m, n = self.shapes[x]
        self.add(*self.some(([m, n], x), ([n], f"{x}[0]"), ([n, m], f"transpose({x})"), ([m * n], f"reshape({x}, [-1])")))
        self.line(f"{x} = {self.some('none', '1', 'ones([3])')}")
        del self.shapes[x]

    def block(self):
        x, shape = self.floats()
        y, z = self.name(), self.name()
        self.line("{", f"    let {y} = {x} * 2.0", f"    let {z} = {y} + {x}", f"    {y} = {self.some(z, 'none', f'exp({z})')}", "}")

    def branch(self):
        x, shape = self.floats()
        y = self.add(shape, f"if {self.random.randint(0, 1)} == 1 {{ {x} * 2.0 }} else {{ let t = {x} + 1.0; t * t }}")
        self.line(f"match {self.random.randint(0, 3)} {{ 0 => {{ {y} = {x} + 3.0 }}, 1 | 2 => {{ let u = {y} * {x} }}, _ => {{}} }}")

    def attempt(self):
        x, shape = self.floats()
        y = self.name()
        self.line(f"let {y} = {x}", "try {", f"    let a = {x} * 2.0", f"    {y} = a + 1.0",
                  self.some("    error(\"stop\")", f"    {y} = a @ ones([7, 7, 7]) @ ones([2])", "    let b = exp(a)"),
                  f"    {y} = {y} * a", "} catch e {", f"    let c = {x} + 1.0", f"    {y} = {self.some('c', 'c * c', y)}", "}")
        self.shapes[y] = shape

    # --- functions and containers ---

    def loop(self):
        n = self.size(10, 300)
        x = self.add([n, n], f"ones([{n}, {n}])")
        count = self.random.randint(1, 5)
        body = self.some(f"    {x} = tanh({x} @ {x}) * 0.5 + {x}", f"    if i == 2 {{ continue }}\n    {x} = {x} + i",
                         f"    let t = {x} * 2.0\n    if i == 3 {{ break }}\n    {x} = t", f"    {x}[i] = {x}[0] + 1.0")
        if self.some(True, False):
            self.line(f"for i in 0..{count} {{", body, "}")
        else:
            self.line(f"for (i, row) in enumerate({x}[:{count}]) {{", body, "}")

    def function(self):
        f, (x, shape) = self.name("f"), self.floats()
        self.line(*self.some(
            [f"fn {f}(a) {{", "    let b = a * 2.0", "    let c = b + a", "    exp(-c * c)", "}"],
            [f"fn {f}(a, n = 3) {{", f"    if n == 0 {{ return a }}", f"    {f}(a + 1.0, n - 1)", "}"],
            [f"fn {f}(a) {{", "    let pair = (a * 2.0, a + 1.0)", "    let (p, q) = pair", "    pair = none", "    p * q", "}"],
            [f"let {f}_kept = {x} * 3.0", f"fn {f}(a) {{ {f}_kept * a }}"],
            [f"fn {f}(a) {{", "    let g = fn(b) { a + b }", "    g(1.0) * g(2.0)", "}"],
            [f"fn {f}(a) {{", "    for b in [a, a * 2.0, a + 1.0] { if type(b) == \"tensor\" { return b * 2.0 } }", "    a", "}"]))
        self.add(shape, f"{f}({x})")

    def closure(self):
        x, shape = self.floats()
        make, held = self.name("f"), self.name("f")
        self.line(f"fn {make}() {{", f"    let big = {x} + 1.0", "    let count = 0",
                  "    fn(a) { count += 1; big = big * a; big }", "}", f"let {held} = {make}()")
        self.add(shape, f"{held}(2.0) + {held}(3.0)")
        if self.some(True, False):
            self.line(f"{held} = none")

    def containers(self):
        kept, (x, shape) = self.name("l"), self.floats()
        self.line(f"let {kept} = []", f"for i in 0..{self.random.randint(2, 6)} {{ {kept}.push({x} * i) }}")
        self.line(*self.some([f"{kept}.pop()"], [f"{kept}.reverse()"], [f"{kept} = {kept}.map(fn(a) {{ a + 1.0 }})"],
                             [f"let {kept}_copy = copy({kept})", f"{kept}.clear()", f"{kept}.push({x})"],
                             [f"{kept} = [a * 2.0 for a in {kept} if type(a) == \"tensor\"]"], [f"{kept}[0] = {x} + {kept}[-1]"],
                             [f"{kept}.push({kept})"], [f"{kept} = {kept}.reduce(fn(a, b) {{ a + b }})", f"{kept} = [{kept}]"]))
        self.add(shape, f"{kept}[0] * 1.0")

    def dictionary(self):
        kept, (x, shape) = self.name("d"), self.floats()
        self.line(f"let {kept} = {{a: {x} * 2.0, b: [{x}, {x} + 1.0], 3: ({x} - 1.0, 5)}}",
                  self.some(f"{kept}.a = {kept}.b[1]", f"{kept}.remove(\"a\")", f"{kept}[\"new\"] = {kept}.a * {x}",
                            f"for (key, value) in {kept}.items() {{ if type(value) == \"tensor\" {{ {kept}[key] = value * 2.0 }} }}",
                            f"{kept} = {kept}.merge({{a: none, c: {x}}})"))
        self.add(shape, f"{kept}.b[0] + {kept}[3][0]")

    def comprehension(self):
        x, shape = self.floats()
        if shape and 1 <= shape[0] <= 40:
            self.add(shape, self.some(f"stack([row * 2.0 for row in {x}])", f"stack([{x}[i] + i for i in 0..{shape[0]}])",
                                      f"stack([r for r in {x}])"))
        else:
            self.add(shape, f"[a + 1.0 for a in [{x}, {x} * 2.0]][1]")

    def struct(self):
        s, (x, shape) = self.name("S"), self.floats()
        field = self.name("s")
        self.line(f"struct {s} {{ a: any, b: any }}", f"impl {s} {{ fn twice(self) {{ {s} {{ a: self.b, b: self.a * 2.0 }} }} }}")
        if self.some(True, False):
            self.line(f"impl Drop for {s} {{ fn drop(self) {{ let last = ones([50, 50]) + 1.0 }} }}")
        self.line(f"let {field} = {s} {{ a: {x} + 1.0, b: {x} * 3.0 }}")
        self.line(self.some(f"{field} = {field}.twice()", f"{field}.a = {field}.b", f"let {field}_other = {field}.twice()"))
        self.add(shape, f"{field}.twice().b + 0.0")

    def equation(self):
        x, (m, k) = self.floats(2)
        n, a, b, y = self.size(3, 40), self.name("A"), self.name("B"), self.name("Y")
        self.line(f"let {a} = {x}", f"let {b} = randn([{k}, {n}])")
        shape, text = self.some(
            ([m, n], f"{y}[i, j] = {a}[i, k] {b}[k, j]"), ([m, n], f"{y}[i, j] = relu({a}[i, k] {b}[k, j] + 1.0)"), ([m], f"{y}[i] = {a}[i, k] ** 2"),
            ([n, m], f"{y}[j, i] = exp(-({a}[i, k] {b}[k, j]) ** 2)"), ([m, n], f"{y}[i, j.] = softmax({a}[i, k] {b}[k, j])"),
            ([m, m], f"{y}[i, i'] = ({a}[i, k] - {a}[i', k]) ** 2"), ([n], f"{y}[j] = {b}[k, j] / 2.0"))
        if len(shape) == 2 and m * m * k > 2000000:
            return
        self.line(text)
        self.shapes[y] = shape

    def facts(self):
        r, n = self.name("Edge"), self.size(3, 30)
        self.line(f"relation {r}(a: int, b: int)", f"for i in 0..{n} {{ {r}(i, i + 1) }}", f"{r}Path(X, Y) <- {r}(X, Y)",
                  f"{r}Path(X, Z) <- {r}Path(X, Y), {r}(Y, Z)")
        self.add([5], f"ones([5]) * len([row for row in {r}Path])")

    # --- gradients and training ---

    def gradient(self):
        x, shape = self.floats()
        n = 1
        for s in shape:
            n *= s
        forms = [f"grad(fn(y) {{ sum(sin(y) * y) }}, {x})", f"value_and_grad(fn(y) {{ mean(tanh(y) ** 2) }}, {x})[1]",
                 f"grad(fn(y) {{ sum(checkpoint(fn(z) {{ exp(-z * z) + tanh(z) }})(y) * y) }}, {x})",
                 f"vjp(fn(y) {{ y * y }}, {x}, {x})[1]", f"jvp(fn(y) {{ y * sin(y) }}, {x}, {x})[1]",
                 f"grad(fn(y) {{ sum(grad(fn(z) {{ sum(z ** 3) }}, y) * y) }}, {x})", f"grad(fn(y, z) {{ sum(y * z) }}, {x}, {x}, wrt: 1)"]
        self.add(shape, self.some(*forms))

    def derivatives(self):
        n = self.size(3, 20)
        self.add([n, n], self.some(f"jacobian(fn(x) {{ tanh(x) * sum(x) }}, randn([{n}]))", f"hessian(fn(x) {{ sum(x ** 3) }}, randn([{n}]))",
                                   f"scan(fn(s, x) {{ (s + x, s * x) }}, zeros([{n}]), randn([{n}, {n}]))[1]"))

    def backward(self):
        w, n = self.name("w"), self.size(10, 150)
        self.line(f"let {w} = learnable(randn([{n}, {n}]))", f"for i in 0..{self.random.randint(1, 3)} {{",
                  f"    backward(mean(tanh({w} @ {w}) ** 2))", self.some(f"    sgd_step({w}, grad({w}), 0.01)", f"    let g = grad({w})"),
                  self.some("    zero_grad()", "    let u = 1"), "}")
        self.add([n, n], f"{w} + 0.0")

    def settings(self):
        """Settings of a learn block that do not make its end depend on its numbers."""
        drawn = {"clip_grad_norm": "1.0", "clip_grad_value": "0.5", "ema": "0.99", "accumulate": "2", "dropout": "0.2", "report_every": "1",
                 "precision": self.some("float16", "bfloat16"), "scheduler": self.some(*SCHEDULERS)}
        chosen = self.random.sample(sorted(drawn), self.random.randint(0, 4))
        return "".join(f", {word}: {drawn[word]}" for word in chosen)

    def training(self):
        k, n, rows = (self.size(4, 40, 150) for _ in range(3))
        w, x = self.name("w"), self.name("x")
        self.line(f"let {w} = learnable(randn([{k}, {n}]) * 0.1)", f"let {x} = randn([{rows}, {k}])")
        batch = self.some("", "", f", batch: {self.size(3, 16, 64)} of ({x})", f", batch: 8 of ({x}), shuffle: true")
        settings = self.settings()
        if not batch:
            settings = settings.replace(", accumulate: 2", "")
        validate = self.some("", f", validate: mean(({x} @ {w}) ** 2)")
        save = self.some("", "", f", save: \"{w}.{self.some('safetensors', 'gguf')}\", every: 1")
        body = self.some("", f"    let hidden = {x} @ {w}\n", f"    hidden_{w} := relu({x} @ {w})\n")
        self.line(f"let {w}_result = learn {{", body + f"    objective: mean(tanh(dropout({x}) @ {w}) ** 2), optimizer: {self.some(*OPTIMIZERS)},"
                  f" epochs: {self.random.randint(1, 3)}, progress: false{batch}{settings}{validate}{save}", "}")
        self.shapes[x] = [rows, k]

    def imperative(self):
        n, w, x = self.size(8, 100), self.name("w"), self.name("x")
        self.line(f"let {w} = learnable(randn([{n}, {n}]) * 0.1)", f"let {x} = randn([20, {n}])", "learn {",
                  f"    optimizer: {self.some(*OPTIMIZERS)}, epochs: {self.random.randint(1, 3)}, progress: false",
                  "    for epoch in range(epochs) {", f"        let loss = mean(({x} @ {w}) ** 2)", "        backward(loss)", "    }", "}")
        self.shapes[x] = [20, n]

    def network(self):
        n, width, x, net = self.size(5, 60), self.size(8, 40), self.name("x"), self.name("net")
        layers = [f"Linear::new({width}, {width})", f"LayerNorm::new({width})", f"RmsNorm::new({width})", "Dropout::new(0.1)",
                  f"Mlp::new([{width}, 30, {width}])", f"BatchNorm::new({width})", "relu", "tanh"]
        chosen = ", ".join(self.some(*layers) for _ in range(self.random.randint(1, 4)))
        self.line(f"let {net} = Sequential::new(list(Linear::new({width}, {width}), {chosen}))", f"let {x} = randn([{n}, {width}])")
        if self.some(True, True, False):
            train = self.some("", "", f", train: [{net}.layers[0]]", f", freeze: [{net}.layers[0].weight]",
                              f", groups: list({{params: {net}, lr: 0.01, weight_decay: 0.1}})")
            self.line(f"learn {{ objective: mean({net}.forward({x}) ** 2), optimizer: {self.some(*OPTIMIZERS)}, epochs: 2, "
                      f"progress: false{train}{self.settings().replace(', accumulate: 2', '')} }}")
        self.shapes[x] = [n, width]
        self.add([n, width], f"{net}.forward({x})")

    def recurrence(self):
        n, size, steps, x = self.size(1, 8), self.size(5, 40), self.size(1, 6), self.name("x")
        kind, net = self.some("Lstm", "Gru"), self.name("net")
        self.line(f"let {net} = {kind}::new(7, {size})", f"let {x} = randn([{n}, {steps}, 7])")
        if self.some(True, False):
            self.line(f"learn {{ objective: mean({net}.forward({x})[0] ** 2), optimizer: adam(), epochs: 1, progress: false }}")
        self.add([n, steps, size], f"{net}.forward({x})[0]")

    def safe(self):
        return self.settings().replace(", accumulate: 2", "")

    def block_of_attention(self):
        n, width, x, net = self.size(3, 30), self.size(16, 32), self.name("x"), self.name("net")
        kind = self.some("TransformerBlock", "MultiHeadAttention")
        self.line(f"let {net} = {kind}::new({width}, 4)", f"let {x} = randn([2, {n}, {width}])")
        if self.some(True, False):
            self.line(f"learn {{ objective: mean({net}.forward({x}) ** 2), optimizer: adam(), epochs: 2, progress: false{self.safe()} }}")
        self.add([2, n, width], f"{net}.forward({x})")

    def pictures(self):
        c, h, x, net = self.size(1, 3), self.size(8, 20), self.name("x"), self.name("net")
        layers = ["relu", "MaxPool2d::new(2)", "AvgPool2d::new(2)", "AdaptiveAvgPool2d::new(4)", "Conv2d::new(4, 4, 3, padding: 1)",
                  "BatchNorm::new(4)", "GroupNorm::new(2, 4)"]
        chosen = ", ".join(self.some(*layers) for _ in range(self.random.randint(1, 2)))
        self.line(f"let {net} = Sequential::new(list(Conv2d::new({c}, 4, 3, padding: 1), {chosen}))", f"let {x} = randn([3, {c}, {h}, {h}])")
        if self.some(True, False):
            self.line(f"learn {{ objective: mean({net}.forward({x}) ** 2), optimizer: {self.some(*OPTIMIZERS)}, epochs: 2, "
                      f"progress: false{self.safe()} }}")
        self.add([3], f"mean({net}.forward({x}), [1, 2, 3])")

    def rows(self):
        n, k, x = self.size(7, 64, 300), self.size(3, 40), self.name("x")
        ids = f"argmax({x}, 1), randint(0, {k}, [{n}]), {k}"
        self.line(f"let {x} = randn([{n}, {k}])", self.some(
            f"for b in batches({x}, 16) {{ let t = b * 2.0; t = t + 1.0 }}", f"{x} = standardise({x})[0]", f"{x} = min_max_scale({x})",
            f"{x} = shuffle({x}, {x} * 2.0)[1]", f"let {x}_split = train_test_split({x}, {x} * 2.0)",
            f"let {x}_table = confusion_matrix({ids})", f"let {x}_f = f1_score({ids})"))
        self.add([n, k], f"{x} * 2.0")

    def resumed(self):
        w, n = self.name("w"), self.size(5, 100)
        file = f"{w}.safetensors"
        block = f"objective: mean({w} ** 2), optimizer: {self.some(*OPTIMIZERS)}, progress: false, save: \"{file}\""
        self.line(f"let {w} = learnable(randn([{n}, {n}]))", f"learn {{ {block}, epochs: 1 }}",
                  f"learn {{ {block}, epochs: 2, resume: \"{file}\" }}")
        self.add([n, n], f"{w} * 1.0")

    def names(self):
        e, n, d = self.name("Kind"), self.size(3, 40), self.size(4, 64)
        members = ", ".join(f"m{e}{i}" for i in range(n))
        self.line(f"entity {e} = {{{members}}}", f"relation {e}Near(x: {e}, y: {e})",
                  *[f"{e}Near(m{e}{i}, m{e}{(i + 1) % n})" for i in range(0, n, 2)],
                  f"embedding {e}Rows {{ entities: {e} dimension: {d} init: xavier learnable }}", f"{e}Paths[x, z] = {e}Near[x, y] {e}Near[y, z]")
        self.line(*self.some([], [f"learn {{ objective: sum(({e}Rows[m{e}0] - {e}Rows[m{e}1]) ** 2), optimizer: sgd(lr: 0.1), epochs: 2, "
                                  "progress: false }"], [f"{e}Mixed[x, d] = {e}Near[x, y] {e}Rows[y, d]"]))
        self.add([n, n], f"{e}Paths * 2")

    def read_back(self):
        f, n = self.name("f"), self.size(8, 60)
        shape, *lines = self.some(
            ([3, n, n], f"save_image(rand([3, {n}, {n}]), \"{f}.png\")", f"let {f} = load_image(\"{f}.png\")"),
            ([1, n * 50], f"save_audio(zeros([1, {n * 50}]), \"{f}.wav\", 8000)", f"let {f} = load_audio(\"{f}.wav\")[0]"),
            ([n, 4], f"write_csv(\"{f}.csv\", zeros([{n}, 4]))", f"let {f} = tensor(read_csv(\"{f}.csv\"))"),
            ([n, n], f"save(zeros([{n}, {n}]), \"{f}.npy\")", f"let {f} = load(\"{f}.npy\")"))
        self.line(*lines)
        self.add(shape, f"{f} * 1.0")

    def elsewhere(self):
        y, n = self.name(), self.size(10, 200)
        self.line(f"let {y} = none", "with device(\"cpu\") {", f"    let t = ones([{n}, {n}]) * 2.0", f"    {y} = t + 1.0", "}",
                  f"{y} = to({y}, device())")
        self.shapes[y] = [n, n]

    # --- models, caches, arenas, files ---

    def model(self):
        m, n = self.name("m"), self.size(32, 256)
        file = f"{m}.{self.some('safetensors', 'gguf')}"
        dtype = self.some("", "", ", dtype: float16", ", dtype: q8_0", ", dtype: q4_0") if file.endswith("gguf") else ""
        self.line(f"save_model({{w: randn([{n}, {n}]), b: randn([{n}])}}, \"{file}\"{dtype})", f"let {m} = load_model(\"{file}\")")
        self.line(f"let {m}_w = {self.some(f'{m}.w', f'get_tensor({m}, {chr(34)}w{chr(34)})')}")
        self.add([5, n], f"linear(randn([5, {n}]), {m}_w)")
        self.line(*self.some([], [f"{m} = none"], [f"{m} = none", f"{m}_w = none"], [f"let {m}_e = embedding({m}_w, tensor([1, 2])) as float32"]))

    def saved(self):
        w, n = self.name("w"), self.size(10, 200)
        file = f"{w}.safetensors"
        self.line(f"save({{w: ones([{n}, {n}]), more: [zeros([3]), ones([{n}])]}}, \"{file}\")")
        self.add([n, n], f"load(\"{file}\").w")

    def cache(self):
        c, heads, d = self.name("c"), 2, self.size(8, 64)
        self.line(f"let {c} = {self.some('KVCache::new(2)', 'KVCache::new_f16(2)', 'KVCache::new(2, capacity: 50)')}")
        for _ in range(self.random.randint(1, 4)):
            rows = self.size(1, 1, 7, 60)
            fresh = f"randn([{rows}, {heads}, {d}])"
            self.line(self.some(f"{c}.append(0, {fresh}, {fresh})", f"let {self.name()} = {c}.attend(1, {fresh}, {fresh}, {fresh})",
                                f"{c}.set(0, {fresh}, {fresh})", f"{c}.truncate(3)", f"let {self.name('c')} = {c}.fork()"))
        if self.some(True, False):
            self.line(f"{c} = none")

    def arena(self):
        b, y = self.name("b"), self.name()
        self.line(f"let {b} = new_tensor_buffer({self.size(100000, 1000000)})", f"let {y} = none", f"with buffer {b} {{",
                  f"    let t = {b}.zeros([50, 40])", "    t[0] = 1.0", f"    let u = {b}.alloc([30], 2)", f"    {y} = {self.some('t', 't * 2.0', 'u[0]')}", "}",
                  self.some(f"{b}.reset()", f"{b} = none", f"let {self.name()} = {b}.ones([20])"))

    def texts(self):
        x = self.pick()
        f = self.name("t")
        self.line(self.some(f"print({x})", f"write_file(\"{f}.txt\", str({x}.shape))", f"print(f\"{{{x}.shape}} {{rank({x})}}\")",
                            f"let {f} = to_list(zeros([3, 4]))", f"let {f} = memory().live", "clear_cache()", "synchronize()",
                            f"write_csv(\"{f}.csv\", ones([4, 3]))", f"save_image(zeros([3, 8, 8]), \"{f}.png\")"))

    STEPS = ("create create numbers elementwise elementwise elementwise broadcast product product reduction rearrangement rearrangement "
             "rearrangement convolution attention decomposition loss release release change alias block branch attempt loop function "
             "closure containers dictionary comprehension struct equation facts gradient derivatives backward training training imperative "
             "network recurrence model saved cache arena texts block_of_attention pictures rows resumed names read_back "
             "elsewhere").split()

    def program(self):
        for _ in range(self.random.randint(3, 14)):
            getattr(self, self.some(*self.STEPS))()
        self.lines += [f"print(sum({x} as float64))" for x in list(self.shapes)[:3]]
        return BEGIN + "\n".join(self.lines) + "\n"
