// The bytes that each optimizer keeps for the numbers that it updates, and the trials that it runs in. The training
// step builds the same (optim::state_layout), the planner counts with these numbers.
#pragma once
#include <optional>
#include <string>

#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/stage_split.h"
#include "schema/trial.h"

namespace sweep::shape {

// Numbers that the optimizer keeps for each parameter beside it: AdamW the mean and the square of its gradients, SGD
// with momentum their mean.
i64 moments_of(OptimizerKind);

// adamw_8bit: moments are codes of eight bits, and each block of so many numbers has a scale in fp32 for either moment.
inline constexpr i64 kEightBitBlock = 256;
// Tensors with fewer numbers keep moments in fp32, as in bitsandbytes (min_8bit_size). A tensor is what the optimizer
// updates at once: this rank's part of a bucket.
inline constexpr i64 kLeastEightBit = 4096;

// paged_adamw keeps moments in host memory. For the update they come to the device in pages of so many numbers of a
// tensor, two pages at a time.
inline constexpr i64 kPage = i64{1} << 22;

// Bytes on the device of the moments of a tensor of so many elements, in these types.
i64 moment_bytes(OptimizerKind, const StateTypes&, i64 elements);
// adafactor: numbers that it keeps for a part of the model: one for each row and each column of a matrix, one for each
// element of a vector.
double factored_numbers(const Trial&, const StageShare&);
// Bytes on the device of so many of them; 0 for another optimizer.
i64 factored_bytes(const Trial&, i64 numbers);
// Bytes on the device of the whole optimizer state of a tensor of so many elements, its fp32 master included;
// adafactor's numbers are not.
i64 optimizer_bytes(const Trial&, i64 elements);
// Bytes on the device that an update takes beside the states: of all the elements that a rank updates, where the
// largest of its tensors has so many. by_kernel: one kernel reads and writes every type itself.
double update_bytes(const Trial&, double elements, double largest, bool by_kernel);
// Bytes of the moments for each element of a large tensor; 0 for adafactor, whose rows and columns are counted apart.
double moment_bytes_each(OptimizerKind, const StateTypes&);

// Why this optimizer does not run in the trial's configuration, as a sentence; nullopt: it does.
std::optional<std::string> optimizer_objection(const Trial&);

}  // namespace sweep::shape
