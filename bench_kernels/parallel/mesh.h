// Mesh: where this rank stands in every dimension, and one channel per dimension to the ranks it shares it
// with. It owns the channels; dimensions with the same members share one backend. It knows nothing of what
// is sent.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench_kernels/comm/channel.h"
#include "bench_kernels/model/layout.h"
#include "bench_kernels/shape/parallel_dims.h"
#include "schema/records.h"

namespace sweep::parallel {

using shape::Dimension;

class Mesh {
 public:
  // A group to be joined.
  struct Meeting {
    std::string name;          // no other group has it
    std::string label;         // its dimension, as people call it
    int rank = 0;              // this one, among the members
    std::vector<i64> members;  // ranks of the world
    bool by_all = false;       // every rank of the world joins one of this dimension now
    int size() const { return static_cast<int>(members.size()); }
  };
  // Joins a group; called in the same order on every member.
  using Join = std::function<comm::BackendPtr(const Meeting&)>;
  Mesh(const shape::ParallelDims&, i64 rank, const Join&, ProgressPage* progress = nullptr);

  const shape::ParallelDims& dims() const { return dims_; }
  i64 rank() const { return rank_; }
  shape::Place place() const { return dims_.place(rank_); }
  comm::Channel& operator[](Dimension d) const { return *channels_[static_cast<std::size_t>(d)]; }
  // Traffic that this rank sent since reset_traffic(), over all channels.
  comm::Traffic traffic() const;
  void reset_traffic();
  // The same by strategy: dp (with what ZeRO shards over), tp (with shared key-value heads), pp (with tied
  // ends), cp, ep, world; those of one rank are left out.
  std::vector<SentTraffic> sent() const;
  // Ends every operation of every group with an error, so that no peer waits for this rank.
  void abort();

 private:
  shape::ParallelDims dims_;
  i64 rank_ = 0;
  std::array<std::unique_ptr<comm::Channel>, shape::kDimensions> channels_;
};

// The mesh of one rank that holds everything.
Mesh alone();
// A rank of any layout without peers: what it sends goes nowhere (dry runs).
Mesh pretend(const shape::ParallelDims&, i64 rank);
// The channels that a trial's model uses.
model::Layout layout_of(const Trial&, const Mesh&);

}  // namespace sweep::parallel
