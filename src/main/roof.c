// The roof of a profile: how fast the device of a run reads and writes memory and multiplies
// matrices, measured by a program in a runtime of its own, after the run.
#include <stdio.h>

#include "embed/embed.h"
#include "main/command.h"

// Work grows until it takes a while: the best of some tries of the largest that there is memory
// for.
static const char program[] =
    "fn seconds(work) {\n"
    "    let fastest = 1e9\n"
    "    for i in 0..4 {\n"
    "        synchronize()\n"
    "        let begun = clock()\n"
    "        let done = work()\n"
    "        synchronize()\n"
    "        let took = clock() - begun\n"
    "        if took < fastest { fastest = took }\n"
    "    }\n"
    "    fastest\n"
    "}\n"
    "fn best(sizes, make, amount) {\n"
    "    let rate = 0.0\n"
    "    for size in sizes {\n"
    "        let took = try { seconds(make(size)) } catch problem { break }\n"
    "        rate = max(list(rate, amount(size as float) / took))\n"
    "        if took > 0.004 { break }\n"
    "    }\n"
    "    rate\n"
    "}\n"
    "fn adding(n) { let x = ones([n]); fn() { x + 1.0 } }\n"
    "fn product(n) { let x = ones([n, n]); fn() { x @ x } }\n"
    "let lengths = list(262144, 1048576, 4194304, 16777216, 67108864)\n"
    "list(best(lengths, adding, fn(n) { 8.0 * n }),\n"
    "     best(list(256, 512, 1024, 2048, 4096), product, fn(n) { 2.0 * n ** 3 }))\n";

static tl_status number_of(tl_value *list, size_t index, double *out) {
    tl_value *item;
    if (tl_item(list, index, &item) != TL_OK) return TL_FAILED;
    tl_status status = tl_to_float(item, out);
    tl_release(item);
    return status;
}

Roof roof_measure(const char *device) {
    Roof roof = {0}, none = {0};
    tl_runtime *tl = tl_runtime_new(device, NULL);
    tl_value *rates = NULL;
    if (!tl) return none;
    bool known = tl_run_text(tl, "roof.tl", program, &rates) == TL_OK &&
                 number_of(rates, 0, &roof.bytes) == TL_OK &&
                 number_of(rates, 1, &roof.flops) == TL_OK;
    tl_release(rates);
    tl_runtime_free(tl);
    return known ? roof : none;
}
