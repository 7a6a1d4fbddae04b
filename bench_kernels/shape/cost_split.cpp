#include "bench_kernels/shape/stage_split.h"

namespace sweep::shape {
namespace {

class Filler {
 public:
  Filler(double total, i64 stages, std::vector<CostShare>& out) : total_(total), stages_(stages), out_(out) {}
  CostShare& take(double cost) {
    CostShare& share = out_[static_cast<std::size_t>(stage_)];
    so_far_ += cost;
    const double limit = total_ * (static_cast<double>(stage_ + 1) / static_cast<double>(stages_));
    if (so_far_ >= limit && stage_ + 1 < stages_) ++stage_;
    return share;
  }

 private:
  double total_, so_far_ = 0;
  i64 stages_, stage_ = 0;
  std::vector<CostShare>& out_;
};

}  // namespace

void split_by_cost(const ModelSpec& m, i64 stages, std::vector<CostShare>& out) {
  out.assign(static_cast<std::size_t>(stages), {});
  const double hidden = static_cast<double>(m.hidden_size);
  const double width = static_cast<double>(m.heads * m.head_dim);
  const double layer = 4 * width * hidden + 3 * static_cast<double>(m.intermediate_size) * hidden;
  const double head = static_cast<double>(m.vocab_size) * hidden;
  Filler filler(layer * static_cast<double>(m.layers) + head, stages, out);
  filler.take(0).embedding = true;
  for (i64 i = 0; i < m.layers; ++i) ++filler.take(layer).layers;
  filler.take(0).other = true;
  filler.take(head).head = true;
  filler.take(0).other = true;
  filler.take(0).loss = true;
}

}  // namespace sweep::shape
