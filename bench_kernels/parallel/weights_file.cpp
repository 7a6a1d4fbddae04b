#include "bench_kernels/parallel/weights_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::parallel {
namespace {

constexpr ScratchUse kWeightsUse = in_checkpoint_folder("weights_load", "the weights");

std::int64_t bytes_of(const at::Tensor& t) {
  return static_cast<std::int64_t>(t.nbytes());
}

std::int64_t whole_weights(const Piece::Quantized& q) {
  const model::Stack& stack = q.parameters->stacks()[q.stack];
  return model::whole_weights(stack.parts[q.part], stack.columns);
}

at::Tensor quantized(const Piece::Quantized& q, const model::WeightRun& weights) {
  const model::Stack& stack = q.parameters->stacks()[q.stack];
  return q.parameters->codes().quantized(stack.parts[q.part], stack.columns, weights);
}

}  // namespace

WeightsFile::WeightsFile(std::vector<const ModelState*> states, WeightsFileOptions options)
    : states_(std::move(states)), options_(std::move(options)) {
  const bool writes = options_.kind == WeightsLoad::kSharded || options_.first;
  if (options_.reads && writes) file_.emplace(0, options_.folder, kWeightsUse);
}

std::int64_t WeightsFile::width_of(const Piece& piece) const {
  if (quantizes(piece))
    return static_cast<std::int64_t>(piece.quantized.parameters->codes().options().dtype().itemsize());
  return static_cast<std::int64_t>(piece.values.element_size());
}

std::int64_t WeightsFile::size_of(const Piece& piece) const {
  return width_of(piece) * (quantizes(piece) ? whole_weights(piece.quantized) : piece.whole);
}

// The piece's place in the file; the place of its whole tensor if that is to be quantized.
std::int64_t WeightsFile::place(const Piece& piece) {
  const auto [found, fresh] = begins_.try_emplace(piece.tensor, end_);
  if (fresh) end_ += size_of(piece);
  return found->second + (quantizes(piece) ? 0 : piece.begin * width_of(piece));
}

// The weights that the tensor was quantized from, once, though several ranks keep pieces of it.
void WeightsFile::write_weights(const Piece& piece) {
  const std::int64_t end = end_, begin = place(piece);
  if (!file_ || end_ == end) return;
  const auto& q = piece.quantized;
  const memory::ScratchScope scratch;
  const auto initial = q.parameters->initial_weights(q.stack, q.part);
  const std::int64_t all = whole_weights(q), most = kStaged / width_of(piece);
  const at::Tensor room =
      at::empty({std::min(all, most)}, piece.values.options().dtype(q.parameters->codes().options().dtype()));
  for (std::int64_t at = 0; at < all; at += most) {
    const at::Tensor run = room.narrow(0, 0, std::min(most, all - at));
    initial(at, run);
    const at::Tensor host = run.is_cpu() ? run : host_room(run).copy_(run);
    file_->write(host.const_data_ptr(), bytes_of(host), begin + at * width_of(piece));
    beat();
  }
}

// The tensor is read some weights at a time, and quantized as a whole; the rank keeps its piece of the bytes.
void WeightsFile::read_weights(const Piece& piece) {
  const std::int64_t begin = place(piece), width = width_of(piece);
  bytes_ += size_of(piece);
  if (!file_) return;
  const at::Tensor all = quantized(piece.quantized, [&](std::int64_t first, at::Tensor run) {
    const at::Tensor host = run.is_cpu() ? run : host_room(run);
    file_->read(host.mutable_data_ptr(), bytes_of(host), begin + first * width);
    if (!run.is_cpu()) run.copy_(host);
    beat();
  });
  at::Tensor(piece.values).copy_(all.narrow(0, piece.begin, piece.values.numel()));
}

// Some bytes of the piece at a time, where they are or in host memory: move(bytes, size, place in the file).
void WeightsFile::by_pieces(const Piece& piece, const std::function<void(at::Tensor, std::int64_t)>& move) {
  const std::int64_t begin = place(piece);
  if (!file_) return;
  const auto width = static_cast<std::int64_t>(piece.values.element_size());
  const std::int64_t most = piece.values.is_cpu() ? piece.values.numel() : kStaged / width;
  for (std::int64_t at = 0; at < piece.values.numel(); at += most) {
    move(piece.values.narrow(0, at, std::min(most, piece.values.numel() - at)), begin + at * width);
    beat();
  }
}

at::Tensor WeightsFile::host_room(const at::Tensor& like) {
  if (!staged_.defined()) staged_ = memory::empty_on_host({kStaged}, like.options().dtype(at::kByte));
  host_bytes_ = std::max(host_bytes_, kStaged);
  return staged_.view(like.scalar_type()).narrow(0, 0, like.numel());
}

void WeightsFile::write() {
  const at::NoGradGuard no_grad;
  const auto write_piece = [this](const Piece& piece) {
    if (quantizes(piece)) return write_weights(piece);
    by_pieces(piece, [this](const at::Tensor& part, std::int64_t at) {
      const at::Tensor host = part.is_cpu() ? part : host_room(part).copy_(part);
      file_->write(host.const_data_ptr(), bytes_of(host), at);
    });
  };
  for (const ModelState* state : states_)
    options_.kind == WeightsLoad::kRank0 ? state->pieces().gathered_weights(write_piece)
                                         : state->pieces().kept_weights(write_piece);
  if (!file_) return;
  file_->sync();
  file_->forget_cached();
}

void WeightsFile::load() {
  const at::NoGradGuard no_grad;
  if (options_.kind == WeightsLoad::kRank0) {
    read_whole();
    for (const ModelState* state : states_)
      state->pieces().spread_weights([this](const Piece& piece) { fill_piece(piece); });
    whole_.reset(), quantized_ = {};
    return;
  }
  const auto read_piece = [this](const Piece& piece) {
    if (quantizes(piece)) return read_weights(piece);
    bytes_ += bytes_of(piece.values);
    by_pieces(piece, [this](const at::Tensor& part, std::int64_t at) {
      const at::Tensor host = part.is_cpu() ? part : host_room(part);
      file_->read(host.mutable_data_ptr(), bytes_of(host), at);
      if (!part.is_cpu()) at::Tensor(part).copy_(host);
    });
  };
  for (const ModelState* state : states_) state->pieces().kept_weights(read_piece);
}

// Rank 0: the whole file, as a loader that keeps it whole has it.
void WeightsFile::read_whole() {
  if (!options_.first) return;
  bytes_ = host_bytes_ = end_;
  if (options_.host_limit && end_ > *options_.host_limit) throw memory::HostMemoryRefused(end_);
  if (!file_) return;
  const memory::HostScope host;
  whole_ = at::empty({end_}, at::TensorOptions(at::kCPU).dtype(at::kByte));
  for (std::int64_t at = 0; at < end_; at += kStaged) {
    const at::Tensor part = whole_.narrow(0, at, std::min(kStaged, end_ - at));
    file_->read(part.mutable_data_ptr(), bytes_of(part), at);
    beat();
  }
}

void WeightsFile::fill_piece(const Piece& piece) {
  const std::int64_t begin = place(piece), width = width_of(piece);
  if (!whole_.defined()) return;
  const auto numbers = [&](at::ScalarType type, std::int64_t first, std::int64_t size) {
    return whole_.view(type).narrow(0, begin / width + first, size);
  };
  at::Tensor values = piece.values;
  if (!quantizes(piece)) {
    values.copy_(numbers(values.scalar_type(), 0, values.numel()));
    return beat();
  }
  if (quantized_.first != piece.tensor)
    quantized_ = {piece.tensor, quantized(piece.quantized, [&](std::int64_t first, at::Tensor run) {
                    run.copy_(numbers(run.scalar_type(), first, run.numel()));
                    beat();
                  })};
  values.copy_(quantized_.second.narrow(0, piece.begin, values.numel()));
}

}  // namespace sweep::parallel
