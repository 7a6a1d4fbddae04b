#include "bench_kernels/parallel/mesh.h"

#include <map>

namespace sweep::parallel {
namespace {

const char* strategy_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::kWorld:
      return "world";
    case Dimension::kTensor:
    case Dimension::kKeyValue:
      return "tp";
    case Dimension::kContext:
      return "cp";
    case Dimension::kPipeline:
    case Dimension::kEnds:
      return "pp";
    case Dimension::kExpert:
      return "ep";
    case Dimension::kData:
    case Dimension::kShard:
    case Dimension::kReplicate:
    case Dimension::kExpertData:
      break;
  }
  return "dp";
}

// A group's name for people: that of the first dimension that says more than "world".
std::string label_of(const shape::ParallelDims& dims, i64 rank, const std::vector<i64>& members) {
  for (std::size_t d = 0; d < shape::kDimensions; ++d) {
    const auto dimension = static_cast<Dimension>(d);
    if (dimension != Dimension::kWorld && dims.group(dimension, rank) == members)
      return shape::name_of(dimension);
  }
  return shape::name_of(Dimension::kWorld);
}

// Says on the page that the rank is about to meet a group, and takes it back when it has.
class Joining {
 public:
  Joining(ProgressPage* page, const std::string& group, std::uint64_t number) : page_(page) {
    if (page_ == nullptr) return;
    const auto name = CollectiveName::of(Collective::kJoin, number, group);
    page_->entered.put(name);
    page_->awaited.put(name);
    page_->beats.fetch_add(1, std::memory_order_relaxed);
  }
  void done() {
    if (page_ != nullptr) page_->awaited.put({});
  }

 private:
  ProgressPage* page_;
};

}  // namespace

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
      Joining joining(progress, label, joined.size());
      // Stages in the middle of a pipeline have no tied table to share with the ends.
      const bool by_all = dimension != Dimension::kEnds;
      backend = join({label + "_" + std::to_string(members.front()), label_of(dims_, rank, members),
                      static_cast<int>(mine), members, by_all});
      joining.done();
    }
    channels_[d] = std::make_unique<comm::Channel>(label, backend, progress);
  }
}

comm::Traffic Mesh::traffic() const {
  comm::Traffic sum;
  for (const auto& channel : channels_) sum += channel->traffic();
  return sum;
}

std::vector<SentTraffic> Mesh::sent() const {
  std::map<std::string, SentTraffic> by_strategy;
  for (std::size_t d = 0; d < shape::kDimensions; ++d) {
    const comm::Channel& channel = *channels_[d];
    if (channel.alone()) continue;
    const std::string strategy = strategy_of(static_cast<Dimension>(d));
    SentTraffic& sum = by_strategy[strategy];
    sum.strategy = strategy;
    sum.calls += channel.traffic().total_calls();
    sum.bytes += channel.traffic().total_bytes();
  }
  std::vector<SentTraffic> all;
  for (auto& [strategy, sum] : by_strategy) all.push_back(std::move(sum));
  return all;
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
              [](const Mesh::Meeting& group) { return comm::make_fake(group.rank, group.size()); });
}

model::Layout layout_of(const Trial& t, const Mesh& mesh) {
  model::Layout layout{&mesh[Dimension::kTensor], &mesh[Dimension::kContext], &mesh[Dimension::kExpert],
                       &mesh[Dimension::kData], &mesh[Dimension::kKeyValue]};
  layout.token_rank = mesh.place().dp * t.cp + mesh.place().cp;
  layout.sequence_parallel = t.sp;
  layout.tensor_overlap = t.tp_overlap;
  layout.context_all_to_all = t.cp_comm_type == CpCommType::kAllToAll;
  layout.tied_elsewhere = t.pp > 1;
  return layout;
}

}  // namespace sweep::parallel
