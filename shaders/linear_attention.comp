// LINEAR_ATTENTION: a thread makes one column of a head's state, from the first row to the last. The
// state lies where the result wants it at the end; the first row reads the given one.
#include "types.glsl"
#include "host/linear_attention.h"

layout(local_size_x = LINEAR_THREADS) in;

int64_t place(int64_t row, int64_t head, int64_t number) {
    return (row * int64_t(shape.heads) + head) * int64_t(shape.values) + number;
}

void main() {
    uint64_t group = group_number();
    int64_t head = int64_t(group / blocks);
    int64_t column = int64_t(group % blocks) * LINEAR_THREADS + int64_t(gl_LocalInvocationID.x);
    if (head >= int64_t(shape.heads) || column >= int64_t(shape.values)) return;
    int64_t rows = int64_t(shape.rows);
    for (uint i = 0; shape.rows == 0 && i < shape.keys; i++)
        store(out_address, place(i, head, column), DTYPE,
              load(shape.state, int64_t(i) * shape.state_steps[0] + head * shape.state_steps[1] +
                                    column * shape.state_steps[2], DTYPE));
    for (uint t = 0; t < shape.rows; t++) {
        int64_t row = int64_t(t);
        uint64_t from = t == 0 ? shape.state : out_address;
        int64_t start = t == 0 ? head * shape.state_steps[1] + column * shape.state_steps[2]
                               : place(rows, head, column);
        int64_t step = t == 0 ? shape.state_steps[0] : place(1L, 0L, 0L);
        int64_t q = row * shape.q_steps[0] + head * shape.q_steps[1];
        int64_t k = row * shape.k_steps[0] + head * shape.k_steps[1];
        int64_t decay = row * shape.decay_steps[0] + head * shape.decay_steps[1];
        real more = load(shape.v, row * shape.v_steps[0] + head * shape.v_steps[1] + column * shape.v_steps[2], DTYPE);
        if (DELTA) {
            real known = real(0);
            for (uint i = 0; i < shape.keys; i++) {
                int64_t number = int64_t(i);
                known += load(from, start + number * step, DTYPE) *
                         load(shape.decay, decay + number * shape.decay_steps[2], DTYPE) *
                         load(shape.k, k + number * shape.k_steps[2], DTYPE);
            }
            more = (more - known) *
                   load(shape.beta, row * shape.beta_steps[0] + head * shape.beta_steps[1], DTYPE);
        }
        real sum = real(0);
        for (uint i = 0; i < shape.keys; i++) {
            int64_t number = int64_t(i);
            real value = load(from, start + number * step, DTYPE) *
                             load(shape.decay, decay + number * shape.decay_steps[2], DTYPE) +
                         load(shape.k, k + number * shape.k_steps[2], DTYPE) * more;
            store(out_address, place(rows + number, head, column), DTYPE, value);
            sum += value * load(shape.q, q + number * shape.q_steps[2], DTYPE);
        }
        store(out_address, place(row, head, column), DTYPE, sum);
    }
}
