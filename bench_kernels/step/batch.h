// Batch: the tokens of one rank's step. The synthetic global batch is a pure function of seed, vocabulary,
// length and size; a rank takes its rows, and of each row its positions (context parallelism), so that every
// layout trains on the same tokens. Each row is exactly seq_len long; labels are the next tokens. Where `lengths`
// gives documents (shape/documents.h), each has a token more, its last label; padding has no label. The same batch
// repeats each step, so that the loss must fall.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "bench_kernels/kernels/ops.h"
#include "bench_kernels/shape/parallel_dims.h"
#include "schema/trial.h"

namespace sweep::step {

struct Batch {
  // One entry per micro-step, int64 [micro_batch_size * seq_len / cp]. Labels of padding are negative.
  std::vector<at::Tensor> tokens, labels;
  // The encoder's, int64 [micro_batch_size * encoder_length()]: the sequence's own tokens, from its first on again
  // where the encoder's sequences are longer; empty: the model has no encoder.
  std::vector<at::Tensor> sources;
  std::vector<kernels::Documents> documents;  // packed ones; empty: there are none
  bool holes = false;                         // some labels may be negative
  double weight = 1;                          // all tokens of the global batch over those with a label
  i64 labelled = 0;                           // this rank's tokens with a label; of meta tensors unknown
};

// The token of a sequence of the global batch at a position from 0 to seq_len (the last is only a label). With
// lengths each document is a sequence of its own: document_sequence().
using TokenSource = std::function<i64(i64 sequence, i64 position)>;
TokenSource synthetic_tokens(std::uint64_t seed, i64 vocab_size);
// The number of the document that begins there.
i64 document_sequence(const Trial&, i64 row, i64 position);

Batch make_batch(const Trial&, at::Device, const shape::Place&, const TokenSource&);

}  // namespace sweep::step
