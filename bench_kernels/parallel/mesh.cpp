#include "bench_kernels/parallel/mesh.h"

#include <map>

namespace sweep::parallel {

Mesh::Mesh(const shape::ParallelDims& dims, i64 rank, const Join& join, ProgressPage* progress)
    : dims_(dims), rank_(rank) {
  std::map<std::vector<i64>, comm::BackendPtr> joined;
  for (std::size_t d = 0; d < shape::kDimensions; ++d) {
    const auto dimension = static_cast<Dimension>(d);
    const std::string label = shape::name_of(dimension);
    const std::vector<i64> members = dims_.group(dimension, rank);
    if (members.size() == 1) {
      channels_[d] = std::make_unique<comm::Channel>(label);
      continue;
    }
    comm::BackendPtr& backend = joined[members];
    if (!backend) {
      const auto mine = std::find(members.begin(), members.end(), rank) - members.begin();
      backend = join(label + "_" + std::to_string(members.front()), static_cast<int>(mine),
                     static_cast<int>(members.size()));
    }
    channels_[d] = std::make_unique<comm::Channel>(label, backend, progress);
  }
}

comm::Traffic Mesh::traffic() const {
  comm::Traffic sum;
  for (const auto& channel : channels_) {
    for (std::size_t k = 0; k < comm::kKinds; ++k) {
      sum.calls[k] += channel->traffic().calls[k];
      sum.bytes[k] += channel->traffic().bytes[k];
    }
  }
  return sum;
}

void Mesh::reset_traffic() {
  for (const auto& channel : channels_) channel->reset_traffic();
}

void Mesh::abort() {
  for (const auto& channel : channels_) channel->abort();
}

Mesh alone() {
  return Mesh({}, 0, {});
}

Mesh pretend(const shape::ParallelDims& dims, i64 rank) {
  return Mesh(dims, rank,
              [](const std::string&, int member, int size) { return comm::make_fake(member, size); });
}

model::Layout layout_of(const Trial& t, const Mesh& mesh) {
  model::Layout layout{&mesh[Dimension::kTensor], &mesh[Dimension::kContext], &mesh[Dimension::kExpert],
                       &mesh[Dimension::kData], mesh.place().dp * t.cp + mesh.place().cp};
  layout.sequence_parallel = t.sp;
  layout.tensor_overlap = t.tp_overlap;
  layout.context_all_to_all = t.cp_form == "all_to_all";
  layout.tied_elsewhere = t.pp > 1;
  return layout;
}

}  // namespace sweep::parallel
