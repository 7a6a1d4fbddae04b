// ShmOperation: one collective or one message under way in a ShmBackend: how its bytes enter and leave the
// ring, and how far it is. It owns its tensors until it is waited for.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

namespace sweep::comm {

inline constexpr int kMostShmRanks = 64;

// An operation moves through the ring in pieces; each piece arrives (copied in), has this rank's share
// reduced, and leaves (copied out). Or it is mail between two ranks.
struct ShmOperation {
  c10d::OpType kind = c10d::OpType::UNKNOWN;
  std::vector<at::Tensor> tensors;  // kept until waited for

  using Step = std::function<void(std::uint32_t piece, std::uint32_t slot)>;
  Step copy_in, reduce_share,
      copy_out;  // reduce_share: absent where nothing is reduced before the pieces leave
  std::uint32_t pieces = 1, arrived = 0, reduced = 0, left = 0;

  int peer = -1;  // the peer of a mail operation
  bool sends = false;
  std::uint32_t tag = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0, moved = 0;
  bool moved_all = false;

  bool done() const { return peer >= 0 ? moved_all : left == pieces; }
};

}  // namespace sweep::comm
