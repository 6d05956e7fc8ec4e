"""Programs drawn at random whose sizes, loops and conditions follow from numbers that only a run has.

What tl check --memory claims of them, no run is above; where it cannot know, it claims nothing."""
from memory_programs import BEGIN, Generator


class DataGenerator(Generator):
    """Numbers come from a tensor that is too large to be known before the run."""

    def number(self):
        """An expression of an integer from 0 to about 20 that only a run has, by one of the ways in which a script reads one."""
        t = self.some("t", "t", f"(t * {self.some(2, 3)}.0)")
        return self.some(
            f"(abs(sum({t})) as int) % {self.size(3, 7, 20)}", f"int(argmax({t})) % {self.size(3, 7, 20)}", f"len(nonzero({t} > {self.real()})) / 5000",
            f"sum({t} > {self.real()}) as int / 4000", f"floor(max({t}) * 2.0) as int", f"float(str(floor(max({t})))) as int", f"len(str(sum({t})))",
            f"unique(floor({t} * 2.0)).shape[0]", f"{t}[{t} > {self.real()}].numel / 5000", f"len(f\"{{mean({t})}}\")",
            f"floor({t}[3, 4] * 3.0 + 9.0) as int", f"topk(reshape({t}, [-1]), 3)[1][0] % 17", f"to_list(argmax({t}, 1))[5] % 9",
            f"int(read_back(sum({t})))", f"int(mean({t}) as float * {self.some(9, 90)}.0) % {self.size(3, 7, 20)}",
            f"abs(sum([max({t}) as float, {self.real()}, 2.0]) as int)", f"tensor([argmax({t}[0]) % 9, {self.size(1, 8)}])[{self.size(0, 1)}]",
            f"max(sum({t} > {self.real()}) as int / 5000, {self.size(1, 8)})", f"({{ chr: floor(max({t})) as int }})[chr]".replace("chr", '"n"'),
            f"round(abs(max({t}) as float), 0) as int", f"len([v for v in {t}[0] if v > {self.real()}]) / 10", f"(median({t}, 0)[3] * 10.0 + 10.0) as int")

    def real(self):
        return self.some("-1.5", "-0.3", "0.0", "0.2", "1.0", "2.5", "9.0")

    def condition(self):
        return self.some(f"mean(t) > {self.some('-0.001', '0.0', '0.001')}", f"any(t > {self.real()})", f"all(t > {self.real()})",
                         f"{self.number()} > {self.size(1, 4, 9)}", f"argmax(t) == {self.size(0, 5)}", f"str(max(t) > {self.real()}) == \"true\"",
                         f"not (t[0, 0] > {self.real()}) and sum(t) < 0.0", f"t[1, 1] > t[2, 2]", f"max(t) in [3.0, 4.0]",
                         f"mean(t) as float * {self.some('2.0', '-1.0')} > {self.real()}", f"(sum(t > {self.real()}) as int) % 2 == 0",
                         f"list(max(t) as float, 1)[0] > {self.real()}", f"not (any(t > {self.real()}) as bool)")

    # --- what numbers decide ---

    def sized(self):
        n = self.name("n")
        self.line(f"let {n} = {self.number()}", f"let {self.name()} = {self.some('zeros', 'ones', 'randn')}([{n} + 1, {self.size(50, 300)}])")

    def repeated(self):
        kept, i = self.name("l"), self.name("i")
        self.line(f"let {kept} = []", self.some(
            f"for {i} in 0..{self.number()} {{ {kept}.push(ones([{self.size(50, 200)}, 100])) }}",
            f"let {i} = {self.number()}\nwhile {i} > 0 {{ {kept}.push(ones([{self.size(50, 200)}, 100]) * 2.0)\n{i} -= 1 }}",
            f"for {i} in 0..4 {{ if {self.condition()} {{ {kept}.push(zeros([{self.size(50, 200)}, 200])) }} else {{ {kept}.clear() }} }}",
            f"for {i} in nonzero(t > {self.some('2.0', '3.0')})[:20] {{ {kept}.push({i} * 2.0 + zeros([100, 2])) }}"))

    def decided(self):
        x = self.name()
        self.line(f"let {x} = ones([{self.size(50, 200)}, 50])", f"if {self.condition()} {{", f"    {x} = zeros([{self.size(50, 400)}, 200])",
                  "} else {", self.some(f"    let y = {x} * 2.0\n    {x} = y + y", f"    {x} = none", f"    {x} = concat({x}, {x}, 0)"), "}")

    def alternating(self):
        a, b, i = self.name("a"), self.name("b"), self.name("i")
        self.line(f"let {a} = none", f"let {b} = none", f"for {i} in 0..{self.size(2, 3, 6)} {{",
                  f"    if {self.condition()} {{ {a} = ones([{self.size(100, 200)}, 100]) }} else {{ {b} = ones([{self.size(100, 200)}, 100]) }}",
                  f"    t = t * -1.0 + {self.real()}" if self.some(True, False) else "    let u = 1", "}")

    def chosen(self):
        x = self.name()
        form = self.some("t[t > {}]", "t[nonzero(t[:, 0] > {})[:, 0]]", "unique(floor(t * 3.0 + {}))", "t[any(t > {}, 1)]", "nonzero(t > {})",
                         "sort(t[t > {}])", "exp(t[t > {}]) * 2.0", "t[t > {}][:50]", "cumsum(t[t < {}], 0)", "t[argsort(t[:, 0])] + {}",
                         "t[argmax(t, 0)] * {}", "reshape(t, [-1])[argmax(t, 1)] - {}")
        self.line(f"let {x} = {form.format(self.real())}", self.some("", f"{x} = {x} * 2", f"let {self.name()} = sum({x} as float64)",
                                                                     f"let {self.name()} = zeros([len({x}) % 30 + 1, 100])"))

    def text_and_back(self):
        s, n = self.name("s"), self.name("n")
        self.line(f"let {s} = {self.some('str(max(t))', 'format(chr, max(t))'.replace('chr', chr(34) + '{:.1}' + chr(34)), 'join([str(max(t)), str(min(t))], chr)'.replace('chr', chr(34) + ' ' + chr(34)))}",
                  f"let {n} = {self.some(f'len({s})', f'float({s}.split(chr)[0]) as int'.replace('chr', chr(34) + '.' + chr(34)), f'({s} + {s}).len()', f'len({s}.split())', f'int({s}[0] in [chr1, chr2])'.replace('chr1', chr(34) + '4' + chr(34)).replace('chr2', chr(34) + '-' + chr(34)))}",
                  f"let {self.name()} = zeros([abs({n}) + 1, {self.size(100, 300)}])")

    def shown(self):
        self.line(self.some("print(f\"{mean(t):.3} of {t.shape}\")", "print(str(sum(t)) + \" in all\")", "print(max(t), argmax(t, 0)[:3])",
                            f"write_file(\"{self.name('f')}.txt\", str(mean(t)))", "assert(mean(t) < 5.0, \"too large\")",
                            f"let {self.name('s')} = f\"{{sum(t)}}\" + \"!\""))

    def kept_in_a_file(self):
        f, m = self.name("f"), self.name("m")
        self.line(f"save({{x: floor(t[:2] * 3.0), n: tensor([2, 3])}}, \"{f}.safetensors\")", f"let {m} = load(\"{f}.safetensors\")",
                  f"let {self.name()} = zeros([{self.some(f'abs({m}.x[0, 1] as int)', f'{m}.n[1]', f'sum({m}.x > 0.0) as int')} + 1, 100])")

    def attempted(self):
        x = self.name()
        self.line(f"let {x} = none", "try {", f"    assert({self.condition()})", f"    {x} = ones([{self.size(30, 200)}, 100])",
                  "} catch e {", f"    {x} = ones([{self.size(30, 300)}, 100])", "}")

    DATA_STEPS = ("sized repeated decided decided alternating alternating chosen chosen text_and_back shown shown kept_in_a_file attempted "
                  "create elementwise reduction release product").split()

    def program(self):
        self.line(f"let t = randn([{self.size(200, 300)}, {self.size(100, 300)}])",
                  "fn read_back(x) { write_file(\"back.txt\", str(x))\n abs(float(read_file(\"back.txt\"))) % 30.0 as int }")
        for _ in range(self.random.randint(1, 5)):
            getattr(self, self.some(*self.DATA_STEPS))()
        return BEGIN + "\n".join(self.lines) + "\n"
