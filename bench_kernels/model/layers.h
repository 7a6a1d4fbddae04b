// The layers units are made of: a linear layer and a norm, with the stacks that hold their parameters.
#pragma once
#include <string>
#include <vector>

#include "bench_kernels/model/unit.h"

namespace sweep::model {

struct Linear {
  Parameters::Id weight = Parameters::kNone, bias = Parameters::kNone;
  bool transposed = false;
  kernels::Weight value(const Parameters& p) const {
    return {p[weight], bias == Parameters::kNone ? at::Tensor() : p[bias], transposed};
  }
};

struct NormLayer {
  Parameters::Id w = Parameters::kNone, b = Parameters::kNone;
};

bool is_gpt2(const ModelSpec&);
// The name of a module of a layer: by its family's Hugging Face module tree.
std::string in_block(const ModelSpec&, std::int64_t layer, const char* llama, const char* gpt2);

// Stacks `<name>.weight` (and `<name>.bias`) of the parts. transposed: weights are [in, out].
Linear add_linear(Parameters&, const std::vector<Parameters::Part>&, std::int64_t inputs, bool bias,
                  bool transposed);
NormLayer add_norm(const Shared&, const std::string& name);

kernels::Norm norm_of(const Shared&, const NormLayer&);
// Both put the gradients where they belong and say that they are ready.
void backward_weight(const Parameters&, const Linear&, const at::Tensor& dout, const at::Tensor& in);
void backward_norm(const Shared&, const NormLayer&, const at::Tensor& dy, const at::Tensor& x,
                   const kernels::NormStats&, const at::Tensor& residual, const at::Tensor& dx);

}  // namespace sweep::model
