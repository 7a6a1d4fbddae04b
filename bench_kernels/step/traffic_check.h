// Traffic check: what a rank sent in one step, as its channels counted it, against the closed forms of
// bench_kernels/shape, dimension by dimension. It owns nothing. Not judged, having no closed form: the bytes
// that experts exchange unless each is chosen as often, and how many pieces an overlapped exchange has.
#pragma once
#include <string>
#include <vector>

#include "bench_kernels/step/train_step.h"

namespace sweep::step {

// A sentence for each number that differs; empty: all are the formulas'.
// REQUIRES: the mesh's traffic was reset before the step's last run(), which updated; the norms of a chunk fit in one
// bucket (split_traffic.h).
std::vector<std::string> traffic_faults(const Trial&, const parallel::Mesh&, const TrainStep&);

// A sentence more where what was counted is not what a closed form has.
void expect_same(std::vector<std::string>& faults, const std::string& what, double counted, double formula);

}  // namespace sweep::step
