// The collectives of a ShmBackend: what each copies in, reduces and copies out. How they move on is in
// shm_backend.cpp.
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bench_kernels/comm/reduce.h"
#include "bench_kernels/comm/shm_backend.h"
#include "bench_kernels/comm/shm_operation.h"

namespace sweep::comm {

using std::size_t;
constexpr size_t kOnePhase =
    8 << 10;  // below it every rank reduces everything itself: one round of waiting, not two
constexpr size_t kShareElements = 16;  // shares begin at multiples of this many elements

namespace {

std::byte* bytes_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

std::uint32_t pieces_for(size_t bytes, size_t piece) {
  return static_cast<std::uint32_t>(std::max<size_t>(1, (bytes + piece - 1) / piece));
}

void check_tensor(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device().is_cpu() && tensor.is_contiguous(),
              "the shm backend moves contiguous CPU tensors only; got one on ", tensor.device().str());
}

at::Tensor& only(std::vector<at::Tensor>& tensors) {
  TORCH_CHECK(tensors.size() == 1, "the shm backend takes one tensor for each call, not ", tensors.size());
  check_tensor(tensors[0]);
  return tensors[0];
}

using Sources = std::array<const std::byte*, kMostShmRanks>;

std::span<const std::byte* const> sources_of(const ShmSegment& segment, std::uint32_t slot, size_t offset,
                                             Sources& storage) {
  for (int rank = 0; rank < segment.world(); ++rank) storage[rank] = segment.area(slot, rank) + offset;
  return {storage.data(), static_cast<size_t>(segment.world())};
}

// How one piece of an allreduce divides over the ranks; each reduces its share.
struct Shares {
  size_t count = 0, share = 0;  // elements
  Shares(size_t elements, size_t ranks)
      : count(elements),
        share(((elements + ranks - 1) / ranks + kShareElements - 1) / kShareElements * kShareElements) {}
  size_t begin(size_t rank) const { return std::min(count, rank * share); }
  size_t size(size_t rank) const { return std::min(count, begin(rank) + share) - begin(rank); }
};

// Small: each rank reduces all of it into its own tensor.
void reduce_at_once(ShmOperation& operation, const ShmSegment& segment, std::byte* data, size_t bytes,
                    c10::ScalarType type, c10d::ReduceOp::RedOpType op) {
  operation.copy_in = [=, &segment](std::uint32_t, std::uint32_t slot) {
    std::memcpy(segment.area(slot, segment.rank()), data, bytes);
  };
  operation.copy_out = [=, &segment](std::uint32_t, std::uint32_t slot) {
    Sources storage;
    reduce_in_order(type, op, sources_of(segment, slot, 0, storage), data, bytes / c10::elementSize(type));
  };
}

// Large: each rank reduces its share, where it stands in its own tensor, and shows the result in rank 0's
// area. Only what the others reduce is copied in, and only what they reduced is copied out.
void reduce_by_shares(ShmOperation& operation, const ShmSegment& segment, std::byte* data, size_t bytes,
                      c10::ScalarType type, c10d::ReduceOp::RedOpType op) {
  const size_t piece = segment.piece_bytes(), width = c10::elementSize(type);
  const size_t ranks = segment.world(), own = segment.rank();
  const auto shares_of = [=](std::uint32_t index) {
    return Shares(std::min(piece, bytes - index * piece) / width, ranks);
  };
  const auto of_the_others = [=](std::uint32_t index, auto&& copy) {
    const Shares shares = shares_of(index);
    for (size_t rank = 0; rank < ranks; ++rank)
      if (rank != own) copy(shares.begin(rank) * width, shares.size(rank) * width);
  };
  operation.copy_in = [=, &segment](std::uint32_t index, std::uint32_t slot) {
    of_the_others(index, [&](size_t offset, size_t n) {
      std::memcpy(segment.area(slot, own) + offset, data + index * piece + offset, n);
    });
  };
  operation.reduce_share = [=, &segment](std::uint32_t index, std::uint32_t slot) {
    const Shares shares = shares_of(index);
    const size_t offset = shares.begin(own) * width, count = shares.size(own);
    std::byte* share = data + index * piece + offset;
    Sources storage;
    const auto sources = sources_of(segment, slot, offset, storage);
    storage[own] = share;
    reduce_in_order(type, op, sources, share, count);
    std::memcpy(segment.area(slot, 0) + offset, share, count * width);
  };
  operation.copy_out = [=, &segment](std::uint32_t index, std::uint32_t slot) {
    of_the_others(index, [&](size_t offset, size_t n) {
      std::memcpy(data + index * piece + offset, segment.area(slot, 0) + offset, n);
    });
  };
}

std::shared_ptr<ShmOperation> allreduce_operation(const ShmSegment& segment, std::byte* data, size_t bytes,
                                                  c10::ScalarType type, c10d::ReduceOp::RedOpType op) {
  check_reducible(type, op);
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::ALLREDUCE;
  operation->pieces = pieces_for(bytes, segment.piece_bytes());
  (bytes <= kOnePhase ? reduce_at_once : reduce_by_shares)(*operation, segment, data, bytes, type, op);
  return operation;
}

struct Parts {
  std::vector<size_t> offset, bytes;
  size_t largest = 0;
};

// How a tensor divides over the ranks along its first dimension; no splits: evenly.
Parts parts_of(const at::Tensor& tensor, const std::vector<std::int64_t>& splits, int world) {
  const size_t total = tensor.nbytes();
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  TORCH_CHECK(splits.empty() ? rows % world == 0 : splits.size() == static_cast<size_t>(world),
              "alltoall_base: ", rows, " rows do not divide over ", world,
              " ranks, or not one split for each rank");
  const size_t row = rows == 0 ? 0 : total / static_cast<size_t>(rows);
  Parts parts;
  size_t offset = 0;
  for (int rank = 0; rank < world; ++rank) {
    const size_t bytes = row * static_cast<size_t>(splits.empty() ? rows / world : splits[rank]);
    parts.offset.push_back(offset);
    parts.bytes.push_back(bytes);
    parts.largest = std::max(parts.largest, bytes);
    offset += bytes;
  }
  TORCH_CHECK(offset == total, "alltoall_base: the splits add up to ", offset, " bytes, the tensor has ",
              total);
  return parts;
}

}  // namespace

ShmBackend::WorkPtr ShmBackend::allreduce(std::vector<at::Tensor>& tensors,
                                          const c10d::AllreduceOptions& options) {
  at::Tensor& tensor = only(tensors);
  auto operation = allreduce_operation(segment_, bytes_of(tensor), tensor.nbytes(), tensor.scalar_type(),
                                       options.reduceOp.op_);
  operation->tensors = {tensor};
  return start(std::move(operation), options.timeout);
}

ShmBackend::WorkPtr ShmBackend::broadcast(std::vector<at::Tensor>& tensors,
                                          const c10d::BroadcastOptions& options) {
  at::Tensor& tensor = only(tensors);
  const size_t bytes = tensor.nbytes(), piece = segment_.piece_bytes();
  const int root = static_cast<int>(options.rootRank);
  std::byte* data = bytes_of(tensor);
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::BROADCAST;
  operation->tensors = {tensor};
  operation->pieces = pieces_for(bytes, piece);
  operation->copy_in = [=, this](std::uint32_t index, std::uint32_t slot) {
    if (rank_ == root)
      std::memcpy(segment_.area(slot, root), data + index * piece, std::min(piece, bytes - index * piece));
  };
  operation->copy_out = [=, this](std::uint32_t index, std::uint32_t slot) {
    if (rank_ != root)
      std::memcpy(data + index * piece, segment_.area(slot, root), std::min(piece, bytes - index * piece));
  };
  return start(std::move(operation), options.timeout);
}

ShmBackend::WorkPtr ShmBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                const c10d::AllgatherOptions& options) {
  check_tensor(output);
  check_tensor(input);
  const size_t bytes = input.nbytes(), piece = segment_.piece_bytes();
  TORCH_CHECK(output.nbytes() == bytes * size_ && output.scalar_type() == input.scalar_type(),
              "_allgather_base: the output must hold ", size_, " inputs of the same type");
  std::byte *to = bytes_of(output), *from = bytes_of(input);
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::_ALLGATHER_BASE;
  operation->tensors = {output, input};
  operation->pieces = pieces_for(bytes, piece);
  operation->copy_in = [=, this](std::uint32_t index, std::uint32_t slot) {
    std::memcpy(segment_.area(slot, rank_), from + index * piece, std::min(piece, bytes - index * piece));
  };
  operation->copy_out = [=, this](std::uint32_t index, std::uint32_t slot) {
    for (int rank = 0; rank < size_; ++rank) {
      std::memcpy(to + rank * bytes + index * piece, segment_.area(slot, rank),
                  std::min(piece, bytes - index * piece));
    }
  };
  return start(std::move(operation), options.timeout);
}

ShmBackend::WorkPtr ShmBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                     const c10d::ReduceScatterOptions& options) {
  check_tensor(output);
  check_tensor(input);
  const auto type = input.scalar_type();
  const auto op = options.reduceOp.op_;
  check_reducible(type, op);
  const size_t bytes = output.nbytes(), width = c10::elementSize(type);
  TORCH_CHECK(input.nbytes() == bytes * size_ && output.scalar_type() == type,
              "_reduce_scatter_base: the input must hold ", size_, " outputs of the same type");
  const size_t part = segment_.piece_bytes() / size_ / 64 * 64;  // bytes of an area for each receiving rank
  std::byte *to = bytes_of(output), *from = bytes_of(input);
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::_REDUCE_SCATTER_BASE;
  operation->tensors = {output, input};
  operation->pieces = pieces_for(bytes, part);
  operation->copy_in = [=, this](std::uint32_t index, std::uint32_t slot) {
    const size_t n = std::min(part, bytes - index * part);
    for (int rank = 0; rank < size_; ++rank) {
      std::memcpy(segment_.area(slot, rank_) + rank * part, from + rank * bytes + index * part, n);
    }
  };
  operation->copy_out = [=, this](std::uint32_t index, std::uint32_t slot) {
    Sources storage;
    reduce_in_order(type, op, sources_of(segment_, slot, rank_ * part, storage), to + index * part,
                    std::min(part, bytes - index * part) / width);
  };
  return start(std::move(operation), options.timeout);
}

std::int64_t ShmBackend::agree_on_largest(std::int64_t mine) {
  auto operation = allreduce_operation(segment_, reinterpret_cast<std::byte*>(&mine), sizeof(mine),
                                       c10::ScalarType::Long, c10d::ReduceOp::MAX);
  start(operation, timeout_)->wait();
  return mine;
}

ShmBackend::WorkPtr ShmBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                              std::vector<std::int64_t>& output_splits,
                                              std::vector<std::int64_t>& input_splits,
                                              const c10d::AllToAllOptions& options) {
  check_tensor(output);
  check_tensor(input);
  const Parts in = parts_of(input, input_splits, size_), out = parts_of(output, output_splits, size_);
  const bool even = input_splits.empty() && output_splits.empty();
  const size_t largest =
      even ? in.largest : static_cast<size_t>(agree_on_largest(static_cast<std::int64_t>(in.largest)));
  const size_t part = segment_.piece_bytes() / size_ / 64 * 64;
  const auto size_of = [part](size_t bytes, std::uint32_t index) {
    return bytes <= index * part ? size_t{0} : std::min(part, bytes - index * part);
  };
  std::byte *to = bytes_of(output), *from = bytes_of(input);
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::ALLTOALL_BASE;
  operation->tensors = {output, input};
  operation->pieces = pieces_for(largest, part);
  operation->copy_in = [=, this](std::uint32_t index, std::uint32_t slot) {
    for (int rank = 0; rank < size_; ++rank) {
      const size_t n = size_of(in.bytes[rank], index);
      if (n > 0)
        std::memcpy(segment_.area(slot, rank_) + rank * part, from + in.offset[rank] + index * part, n);
    }
  };
  operation->copy_out = [=, this](std::uint32_t index, std::uint32_t slot) {
    for (int rank = 0; rank < size_; ++rank) {
      const size_t n = size_of(out.bytes[rank], index);
      if (n > 0)
        std::memcpy(to + out.offset[rank] + index * part, segment_.area(slot, rank) + rank_ * part, n);
    }
  };
  return start(std::move(operation), options.timeout);
}

ShmBackend::WorkPtr ShmBackend::send(std::vector<at::Tensor>& tensors, int to, int tag) {
  at::Tensor& tensor = only(tensors);
  TORCH_CHECK(to >= 0 && to < size_ && to != rank_, "send: rank ", to, " is not a peer of rank ", rank_,
              " of ", size_);
  segment_.reserve_mail(to);
  auto mail = std::make_shared<ShmOperation>();
  mail->kind = c10d::OpType::SEND;
  mail->tensors = {tensor};
  mail->peer = to;
  mail->sends = true;
  mail->tag = static_cast<std::uint32_t>(tag);
  mail->data = bytes_of(tensor);
  mail->bytes = tensor.nbytes();
  return start(std::move(mail), c10d::kUnsetTimeout);
}

ShmBackend::WorkPtr ShmBackend::recv(std::vector<at::Tensor>& tensors, int from, int tag) {
  at::Tensor& tensor = only(tensors);
  TORCH_CHECK(from >= 0 && from < size_ && from != rank_, "recv: rank ", from, " is not a peer of rank ",
              rank_, " of ", size_);
  auto mail = std::make_shared<ShmOperation>();
  mail->kind = c10d::OpType::RECV;
  mail->tensors = {tensor};
  mail->peer = from;
  mail->tag = static_cast<std::uint32_t>(tag);
  mail->data = bytes_of(tensor);
  mail->bytes = tensor.nbytes();
  return start(std::move(mail), c10d::kUnsetTimeout);
}

ShmBackend::WorkPtr ShmBackend::barrier(const c10d::BarrierOptions& options) {
  auto operation = std::make_shared<ShmOperation>();
  operation->kind = c10d::OpType::BARRIER;
  operation->copy_in = operation->copy_out = [](std::uint32_t, std::uint32_t) {};
  return start(std::move(operation), options.timeout);
}

}  // namespace sweep::comm
