// Optimizers: settings, and per parameter the state that its updates keep. Updates change the
// parameter in place, so that every holder sees them. Knows neither losses nor epochs.
#ifndef TENSOR_OPTIMIZER_H
#define TENSOR_OPTIMIZER_H

#include "base/memory.h"
#include "tensor/view.h"

// The arguments of catalog/optimizers.def by name; an optimizer reads those that it takes.
typedef struct OptimizerSettings {
    OptimizerId id;
    double lr, weight_decay, beta1, beta2, epsilon, momentum, dampening, alpha, lr_decay, initial;
    bool nesterov, amsgrad, centered;
} OptimizerSettings;

typedef struct Optimizer Optimizer;

// Puts a setting by the name of its argument; bools as 0 and 1. False: there is no such setting.
bool optimizer_setting_set(OptimizerSettings *settings, const char *name, double value);
// The settings in an order: name and value; false behind the last.
bool optimizer_setting_get(const OptimizerSettings *settings, size_t index, const char **name,
                           double *value);
// STATUS_VALUE for settings out of their range.
Status optimizer_new(const OptimizerSettings *settings, Optimizer **out) MUST_USE;
void optimizer_free(Optimizer *optimizer);
const char *optimizer_name(const Optimizer *optimizer);
// The learning rate that the next step uses.
double optimizer_rate(const Optimizer *optimizer);
Status optimizer_set_rate(Optimizer *optimizer, double lr) MUST_USE;

// The parameters that it is for when it steps by itself (takes the array, whose tensors are
// counted); NULL: all that there are.
void optimizer_set_parameters(Optimizer *optimizer, TensorArray *parameters);
const TensorArray *optimizer_parameters(const Optimizer *optimizer);

// Parameters with settings of their own.
typedef struct OptimizerGroup {
    TensorArray parameters;  // counted
    double lr, weight_decay; // nan: the optimizer's
} OptimizerGroup;
void optimizer_add_group(Optimizer *optimizer, const OptimizerGroup *group); // takes the array
// NULL where it is in none.
const OptimizerGroup *optimizer_group_of(const Optimizer *optimizer, const Tensor *parameter);
void optimizer_set_group_rate(Optimizer *optimizer, size_t group, double lr);
void optimizer_clear_groups(Optimizer *optimizer);

// The elements of a parameter that an optimizer moves, where others move the rest: its state is
// that of these alone.
typedef struct OptimizerPart {
    Tensor *parameter;
    int64_t first, count;
    Tensor *place; // [count], where they lie; NULL: in the parameter
} OptimizerPart;
typedef VECTOR(OptimizerPart) OptimizerParts;
// For states that are made or restored from now on (copied; NULL: of whole parameters), and where
// the elements of those that there are lie.
void optimizer_set_parts(Optimizer *optimizer, const OptimizerParts *parts);
const OptimizerParts *optimizer_parts(const Optimizer *optimizer);
// The same, and states that there are keep only these parts. STATUS_VALUE when one lacks elements.
Status optimizer_cut(Optimizer *optimizer, const OptimizerParts *parts) MUST_USE;

// One step of `count` parameters; a gradient has its parameter's shape, or is [elements] of its
// part; NULL leaves it alone. The first step of a parameter makes its state. 16-bit parameters are
// rounded from a float32 copy that the state has. What needs memory is done before the first
// parameter moves: a step that is refused changes none.
Status optimizer_step(Optimizer *optimizer, Tensor *const *parameters, Tensor *const *gradients,
                      size_t count) MUST_USE;
// After parameters changed by other hands (loading, restoring): the float32 copies follow them.
Status optimizer_refresh(Optimizer *optimizer) MUST_USE;

// Checkpoints. What an optimizer keeps is found by the parameter that it belongs to.
typedef struct OptimizerState {
    Tensor *parameter, *state; // borrowed; state: [rows, count], NULL when none is kept
    int64_t steps;
    int64_t first, count; // the elements that it is of
    bool is_part;         // others have the rest, of which there may be none
} OptimizerState;
size_t optimizer_count(const Optimizer *optimizer);
OptimizerState optimizer_state(const Optimizer *optimizer, size_t index);
const OptimizerSettings *optimizer_settings(const Optimizer *optimizer);
// Gives a parameter the state of a checkpoint (copied), in place of what it had: what of it lies in
// the part that the optimizer moves.
Status optimizer_restore(Optimizer *optimizer, const OptimizerState *state) MUST_USE;
// Each takes what the other keeps, and its settings.
void optimizer_exchange(Optimizer *a, Optimizer *b);

#endif
