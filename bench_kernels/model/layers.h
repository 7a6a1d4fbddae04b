// The layers units are made of: a linear layer and a norm, with the stacks that hold their parameters.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench_kernels/model/unit.h"
#include "bench_kernels/shape/family.h"

namespace sweep::model {

// Low-rank adapters beside a frozen weight (Hu et al. 2021, arXiv 2106.09685): scale x (in A^T) B^T is added
// to the outputs of each adapted part. The parts' A are one stack and one product, and so are their B's
// gradients of A. Over the tensor group the longer matrix is split as the weight is; of the other each rank's
// gradient is a part of the sum (Role::kPartial), so that the low rows never travel.
struct Adapter {
  Parameters::Id a = Parameters::kNone, b = Parameters::kNone;
  struct Piece {
    std::int64_t column = 0, size = 0;  // this rank's outputs of an adapted part
  };
  std::vector<Piece> pieces;
  std::int64_t rank = 0;  // rank of each piece
  double scale = 1;
  bool there() const { return a != Parameters::kNone; }
  std::int64_t width() const { return rank * static_cast<std::int64_t>(pieces.size()); }
};

struct Linear {
  Parameters::Id weight = Parameters::kNone, bias = Parameters::kNone;
  bool transposed = false;
  bool fp8 = false;
  Adapter adapter;
  bool shared = false;  // tied: who writes the rest of the weight's gradient says that it is ready
  // A quantized weight's values are made here: the caller keeps them for as long as it multiplies.
  kernels::Weight value(const Parameters& p) const { return {p.weight(weight), bias_of(p), transposed, fp8}; }
  at::Tensor bias_of(const Parameters& p) const { return bias == Parameters::kNone ? at::Tensor() : p[bias]; }
};

struct NormLayer {
  Parameters::Id w = Parameters::kNone, b = Parameters::kNone;
  std::optional<double> eps = {};  // nullopt: the model's
};

// The name of a module of a layer, in the model's checkpoints.
std::string in_layer(const ModelSpec&, std::int64_t layer, std::string_view module);

// One weight (and bias) of a stack. Its outputs are sections one after another (q, k and v in one tensor); of
// each section every tensor-parallel rank holds an equal share when the columns are split.
struct LinearPart {
  std::string name;
  std::vector<std::int64_t> sections;
  bool adapted = false;
};
enum class Split { kNone, kColumns, kRows };  // over the tensor group: nothing, the outputs, or the inputs

// This rank's equal share of the size elements of a dimension; not split in a group of one.
Slice tensor_share(const Layout&, std::int64_t dimension, std::int64_t size);
// This rank's rows of a token table: an equal share of the padded vocabulary (shape/splits.h).
Part vocabulary_part(const StageContext&, const std::string& name);
// The first entry of this rank's share of the vocabulary; nullopt: it holds all of it.
kernels::FirstEntry first_entry(const StageContext&);
// Stacks `<name>.weight` (and `<name>.bias`) of the parts. transposed: weights are [in, out].
Linear add_linear(const StageContext&, const std::vector<LinearPart>&, std::int64_t inputs, bool bias,
                  bool transposed, Split);
NormLayer add_norm(const StageContext&, const std::string& name);
// A norm over each head of the queries or keys. Each rank of the tensor group adds up the gradient of its own heads.
NormLayer add_head_norm(const StageContext&, const std::string& name);
// A norm over n numbers of all rows, the same on each rank of the tensor group.
NormLayer add_latent_norm(const StageContext&, const std::string& name, std::int64_t n);

kernels::Norm norm_of(const StageContext&, const NormLayer&);
// h = norm of x. Under autocast x becomes its copy in fp32, which the backward reads.
kernels::NormStats forward_norm(const StageContext&, const NormLayer&, at::Tensor& x, const at::Tensor& h,
                                const kernels::Start& = {});
void say_ready(const Parameters&, const Linear&);
// The weights' part of a backward: now, or where the stage keeps it for later. It must hold what it reads.
template <class Work>
void weights_part(const StageContext& shared, Work&& work) {
  if (shared.later)
    shared.later->emplace_back(std::forward<Work>(work));
  else
    work();
}
// Room for a gradient: the memory of `read`, unless the weights' part still reads it later; then new memory.
at::Tensor room_over(const StageContext&, const at::Tensor& read);
// Puts the gradients where they belong and says that they are ready.
void backward_norm(const StageContext&, const NormLayer&, const at::Tensor& dy, const at::Tensor& x,
                   const kernels::NormStats&, const at::Tensor& residual, const at::Tensor& dx);

}  // namespace sweep::model
