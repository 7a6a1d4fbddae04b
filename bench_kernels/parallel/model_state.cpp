#include "bench_kernels/parallel/model_state.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <utility>

namespace sweep::parallel {

using model::Parameters;

ModelState::ModelState(Parameters& parameters, const Mesh& mesh, const Trial& trial,
                       at::TensorOptions options, optim::OptimizerOptions adamw)
    : parameters_(parameters),
      mesh_(mesh),
      plan_(trial),
      values_(parameters, plan_, mesh, alone_, options),
      gradients_(parameters, plan_, values_),
      optimizer_(plan_, values_, parameters, trial.optimizer, adamw) {
  parameters.gradients().set_observer([this](Parameters::Id id) { gradients_.ready(id); });
  for (std::size_t b = 0; b < parameters.buckets().size(); ++b) runs_.push_back(runs_of(b));
}

ModelState::~ModelState() {
  parameters_.gradients().set_observer(nullptr);
}

void ModelState::need(std::size_t group, model::Pass pass) {
  gradients_.need(group, pass);
  values_.need(group, pass);
}

void ModelState::done(std::size_t group, model::Pass pass) {
  values_.done(group, pass);
  gradients_.done();
}

void ModelState::update(double coefficient) {
  if (!optimizer_.update(gradients_, coefficient)) outstanding_ = coefficient;
}

std::vector<ModelState::Whole> ModelState::whole_tensors() const {
  std::map<std::size_t, std::pair<at::Tensor, at::Tensor>> buckets;  // values, gradients
  std::vector<Whole> all;
  for (const auto& named : parameters_.all()) {
    const auto& stack = parameters_.stacks()[named.stack];
    const auto [found, is_new] = buckets.try_emplace(stack.bucket);
    auto& [values, gradients] = found->second;
    if (is_new) values = values_.whole(stack.bucket);
    const bool trains = parameters_.trains(named.stack);
    if (is_new && trains) gradients = gradients_.whole(stack.bucket);
    Whole whole{named, parameters_.value(named, values), {}};
    if (trains && gradients.defined()) whole.gradient = stack.view(named.part, gradients);
    // A new tensor: where gradients are fp32, to() gives the gradients themselves.
    if (whole.gradient.defined() && outstanding_ != 1)
      whole.gradient = whole.gradient.to(at::kFloat).mul(outstanding_);
    all.push_back(std::move(whole));
  }
  return all;
}

// Over the ranks that average the gradient, and over those of the tensor group that hold the same rows.
double ModelState::copies_of(const model::Stack& stack, const model::Part& part) const {
  const auto size = [this](Dimension d) { return static_cast<double>(mesh_[d].size()); };
  double copies = values_.peers(stack.bucket).copies->size();
  if (stack.role == model::Role::kTied) copies *= size(Dimension::kEnds);
  const model::Slice& slice = part.slice;
  if (slice.whole == 0) return copies * size(Dimension::kTensor);
  const std::int64_t held = slice.dimension == 1 ? stack.columns : part.rows;
  // Rounded down: padding makes the shares of a token table a little more than the whole, never twice as
  // much.
  return copies * static_cast<double>(mesh_[Dimension::kTensor].size() * held / slice.whole);
}

std::vector<ModelState::Run> ModelState::runs_of(std::size_t b) const {
  const comm::Channel& shard = *values_.peers(b).shard;
  const auto& bucket = parameters_.buckets()[b];
  const std::int64_t size = bucket.elements / shard.size(), first = shard.rank() * size;
  std::vector<Run> runs;
  if (bucket.frozen) return runs;
  for (const Parameters::Id id : bucket.stacks) {
    const auto& stack = parameters_.stacks()[id];
    std::int64_t at = stack.offset;
    for (const auto& part : stack.parts) {
      const std::int64_t end = at + part.rows * (stack.columns ? stack.columns : 1);
      const std::int64_t begin = std::max(at, first) - first, stop = std::min(end, first + size) - first;
      const double copies = copies_of(stack, part);
      at = end;
      if (begin >= stop) continue;
      if (!runs.empty() && runs.back().copies == copies)  // padding between them is zero
        runs.back().size = stop - runs.back().begin;
      else
        runs.push_back({begin, stop - begin, copies});
    }
  }
  return runs;
}

void ModelState::add_squares(const at::Tensor& total) const {
  for (std::size_t b = 0; b < runs_.size(); ++b)
    for (const Run& run : runs_[b])
      kernels::add_squares(gradients_.part(b).narrow(0, run.begin, run.size), 1 / run.copies, total);
}

ModelState::Bytes ModelState::bytes() const {
  Bytes bytes{values_.bytes(), 0, optimizer_.bytes()};
  for (const at::Tensor& g : gradients_.kept()) bytes.gradients += static_cast<std::int64_t>(g.nbytes());
  return bytes;
}

std::int64_t ModelState::elements() const {
  std::int64_t sum = 0;
  for (const auto& bucket : parameters_.buckets())
    if (!bucket.quantized) sum += bucket.elements;
  return sum;
}

ModelState::Elements ModelState::count(bool frozen) const {
  Elements counted;
  for (const auto& bucket : parameters_.buckets()) {
    if (bucket.frozen != frozen) continue;
    const bool experts = bucket.role == model::Role::kExpert;
    if (bucket.quantized) {
      (experts ? counted.quantized_experts : counted.quantized) += bucket.elements;
      continue;
    }
    counted.all += bucket.elements;
    if (experts) counted.experts += bucket.elements;
  }
  counted.shared = values_.shared_elements(frozen);
  return counted;
}

std::vector<std::int64_t> ModelState::updated() const {
  std::vector<std::int64_t> sizes;
  for (const std::size_t b : values_.trained()) sizes.push_back(values_.part(b).numel());
  return sizes;
}

std::int64_t ModelState::factored() const {
  std::int64_t sum = 0;
  for (const std::size_t b : values_.trained())
    for (const optim::Extent& e : extents_of(parameters_, b)) sum += e.rows + e.columns;
  return sum;
}

std::int64_t ModelState::padding() const {
  std::int64_t sum = elements();
  for (const auto& stack : parameters_.stacks())
    if (!stack.quantized) sum -= stack.elements();
  return sum;
}

}  // namespace sweep::parallel
