// OPTIMIZER: one step of a parameter, its gradient and the rows of its state; the formulas of
// device/cpu/simd/optimizer_loops.h. A thread has one element.
#include "types.glsl"
#include "host/optimizer.h"

layout(local_size_x = 256) in;

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Number { real v; };

#ifdef REAL_F64
const uint64_t NUMBER_BYTES = 8UL;
#else
const uint64_t NUMBER_BYTES = 4UL;
#endif

Number number_at(uint64_t address, uint64_t i) {
    return Number(address + i * NUMBER_BYTES);
}

real state(uint row, uint64_t i) {
    return number_at(state_address, uint64_t(row) * count + i).v;
}

void set_state(uint row, uint64_t i, real value) {
    number_at(state_address, uint64_t(row) * count + i).v = value;
}

real sgd(uint64_t i, real p, real gradient) {
    if (!MOMENTUM) return p - s.lr * gradient;
    real sum = s.kept * state(0, i) + s.fresh * gradient;
    if (s.kept == R(0)) sum = s.fresh * gradient;
    set_state(0, i, sum);
    return p - s.lr * (VARIANT ? gradient + s.momentum * sum : sum);
}

real adam(uint64_t i, real p, real gradient, real shrink) {
    real mean = s.beta1 * state(0, i) + s.fresh1 * gradient;
    real square = s.beta2 * state(1, i) + s.fresh2 * gradient * gradient, highest = square;
    set_state(0, i, mean);
    set_state(1, i, square);
    if (VARIANT) {
        highest = max(state(2, i), square);
        set_state(2, i, highest);
    }
    return shrink * p - s.step * mean / (sqrt(highest) * s.root + s.epsilon);
}

real rmsprop(uint64_t i, real p, real gradient) {
    real square = s.beta2 * state(0, i) + s.fresh2 * gradient * gradient, centre = R(0);
    set_state(0, i, square);
    if (VARIANT) {
        centre = s.beta2 * state(1, i) + s.fresh2 * gradient;
        set_state(1, i, centre);
    }
    real change = gradient / (sqrt(max(square - centre * centre, R(0))) + s.epsilon);
    if (MOMENTUM) {
        uint row = VARIANT ? 2 : 1;
        change = s.momentum * state(row, i) + change;
        set_state(row, i, change);
    }
    return p - s.lr * change;
}

real adagrad(uint64_t i, real p, real gradient) {
    real square = state(0, i) + gradient * gradient;
    set_state(0, i, square);
    return p - s.step * gradient / (sqrt(square) + s.epsilon);
}

real lion(uint64_t i, real p, real gradient) {
    real mean = state(0, i), direction = s.beta1 * mean + s.fresh1 * gradient;
    real sign_of = direction > R(0) ? R(1) : (direction < R(0) ? R(-1) : R(0));
    set_state(0, i, s.beta2 * mean + s.fresh2 * gradient);
    return p - s.lr * s.weight_decay * p - s.lr * sign_of;
}

void main() {
    uint64_t i = group_number() * 256UL + uint64_t(gl_LocalInvocationID.x);
    if (i >= count) return;
    real p = number_at(parameter_address, i).v;
    real given = number_at(gradient_address, i).v, gradient = given + s.weight_decay * p;
    real next;
    if (RULE == OPTIMIZER_sgd) next = sgd(i, p, gradient);
    else if (RULE == OPTIMIZER_adam) next = adam(i, p, gradient, R(1));
    else if (RULE == OPTIMIZER_adamw) next = adam(i, p, given, s.shrink);
    else if (RULE == OPTIMIZER_rmsprop) next = rmsprop(i, p, gradient);
    else if (RULE == OPTIMIZER_adagrad) next = adagrad(i, p, gradient);
    else next = lion(i, p, given);
    number_at(parameter_address, i).v = next;
}
