#include "bench_kernels/step/batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "bench_kernels/kernels/rows.h"
#include "bench_kernels/model/positions.h"
#include "bench_kernels/shape/documents.h"
#include "bench_kernels/shape/encoder.h"

namespace sweep::step {

TokenSource synthetic_tokens(std::uint64_t seed, i64 vocab_size) {
  return [=](i64 sequence, i64 position) {
    const std::uint64_t h = kernels::mix64(kernels::mix64(seed ^ static_cast<std::uint64_t>(sequence) << 32) +
                                           static_cast<std::uint64_t>(position));
    return static_cast<i64>(h % static_cast<std::uint64_t>(vocab_size));
  };
}

i64 document_sequence(const Trial& t, i64 row, i64 position) {
  return row * t.seq_len + position;
}

namespace {

// One row of the global batch: the documents' tokens, then padding.
struct Row {
  std::vector<i64> inputs, targets, places;
  std::vector<i64> ends;  // behind each document, and behind the padding
};

class Rows {
 public:
  Rows(const Trial& t, const TokenSource& token) : t_(t), token_(token) {
    if (!t.lengths.empty()) documents_.emplace(t);
  }

  // A row; without tokens, its places and ends alone.
  Row row(i64 number, bool tokens) {
    Row out;
    if (!documents_) {
      append(out, number, t_.seq_len, tokens);
      return out;
    }
    for (const i64 length : documents_->row(number))
      append(out, document_sequence(t_, number, at(out)), length, tokens);
    const i64 padding = t_.seq_len - at(out);
    if (padding == 0) return out;
    out.inputs.resize(static_cast<std::size_t>(t_.seq_len), 0);
    out.targets.resize(static_cast<std::size_t>(t_.seq_len), kNoLabel);
    for (i64 place = 0; place < padding; ++place) out.places.push_back(place);
    out.ends.push_back(t_.seq_len);
    return out;
  }

 private:
  static constexpr i64 kNoLabel = -1;
  static i64 at(const Row& row) { return static_cast<i64>(row.places.size()); }
  void append(Row& out, i64 sequence, i64 length, bool tokens) const {
    for (i64 place = 0; place < length; ++place) {
      out.places.push_back(place);
      if (!tokens) continue;
      out.inputs.push_back(token_(sequence, place));
      out.targets.push_back(token_(sequence, place + 1));
    }
    out.ends.push_back(at(out));
  }

  const Trial& t_;
  const TokenSource& token_;
  std::optional<shape::DocumentRows> documents_;
};

template <class T>
void upload(at::Tensor to, const std::vector<T>& values) {
  if (to.is_meta()) return;
  std::vector<T> copy = values;
  to.copy_(at::from_blob(copy.data(), to.sizes(), c10::CppTypeToScalarType<T>::value));
}

// The encoder's tokens of sequences from `first` on.
at::Tensor sources_of(const Trial& t, i64 first, at::TensorOptions options, const TokenSource& token) {
  const i64 length = shape::encoder_length(t);
  const at::Tensor out = at::empty({t.micro_batch_size * length}, options);
  std::vector<i64> ids;
  for (i64 row = 0; row < (out.is_meta() ? 0 : t.micro_batch_size); ++row)
    for (i64 place = 0; place < length; ++place) ids.push_back(token(first + row, place % t.seq_len));
  upload(out, ids);
  return out;
}

// The documents of some rows, one row after another.
kernels::Documents documents_of(const std::vector<Row>& rows, at::Device device) {
  kernels::Documents out;
  out.ends.push_back(0);
  std::vector<i64> places;
  for (const Row& row : rows) {
    const i64 begin = static_cast<i64>(places.size());
    for (const i64 end : row.ends) {
      out.longest = std::max(out.longest, begin + end - out.ends.back());
      out.ends.push_back(begin + end);
    }
    places.insert(places.end(), row.places.begin(), row.places.end());
  }
  const auto options = at::TensorOptions(device);
  out.device_ends = at::empty({out.count() + 1}, options.dtype(at::kInt));
  out.places = at::empty({static_cast<i64>(places.size())}, options.dtype(at::kLong));
  upload(out.device_ends, std::vector<std::int32_t>(out.ends.begin(), out.ends.end()));
  upload(out.places, places);
  return out;
}

}  // namespace

Batch make_batch(const Trial& t, at::Device device, const shape::Place& place, const TokenSource& token) {
  Batch batch;
  if (!t.lengths.empty()) batch.holes = true, batch.weight = 1 / shape::document_counts(t).useful_fraction();
  const auto options = at::TensorOptions(device).dtype(at::kLong);
  const auto positions = model::local_positions(t.seq_len, place.cp, t.cp);
  const i64 rows = t.micro_batch_size, local = static_cast<i64>(positions.size());
  const i64 first_row = place.dp * t.grad_accum * rows;
  Rows source(t, token);
  for (i64 micro = 0; micro < t.grad_accum; ++micro) {
    batch.tokens.push_back(at::empty({rows * local}, options));
    batch.labels.push_back(at::empty({rows * local}, options));
    if (t.spec.has_encoder())
      batch.sources.push_back(sources_of(t, first_row + micro * rows, options, token));
    if (device.is_meta() && !t.packing) continue;
    std::vector<i64> inputs, targets;
    std::vector<Row> all;
    for (i64 row = 0; row < rows; ++row) {
      Row& each = all.emplace_back(source.row(first_row + micro * rows + row, !device.is_meta()));
      for (const i64 position : positions) {
        if (device.is_meta()) break;
        inputs.push_back(each.inputs[static_cast<std::size_t>(position)]);
        targets.push_back(each.targets[static_cast<std::size_t>(position)]);
        batch.labelled += targets.back() >= 0 ? 1 : 0;
      }
    }
    upload(batch.tokens.back(), inputs);
    upload(batch.labels.back(), targets);
    if (t.packing) batch.documents.push_back(documents_of(all, device));
  }
  return batch;
}

}  // namespace sweep::step
