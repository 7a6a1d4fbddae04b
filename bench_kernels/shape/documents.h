// Documents: which of them lie in which row of a step's batch. Padded: one in each row. Packed: documents in
// the order of their numbers, each in the first row that has room (first fit: Johnson, Demers, Ullman, Garey,
// Graham 1974, SIAM J. Comput. 3(4)), for kPackedRows rows at a time, until one fits nowhere; the next rows start
// anew. So a row depends on its number in the global batch alone, and every layout trains on the same documents.
// A document longer than seq_len is cut to its first seq_len tokens. The end of a row is padding.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bench_kernels/shape/lengths.h"
#include "schema/trial.h"

namespace sweep::shape {

inline constexpr i64 kPackedRows = 64;

class DocumentRows {
 public:
  // REQUIRES: lengths are given, and documents_objection() has none.
  explicit DocumentRows(const Trial&);
  // Tokens of the documents of a row of the global batch; at least one.
  const std::vector<i64>& row(i64 number);

 private:
  void pack(i64 window);

  Lengths lengths_;
  bool packed_;
  i64 seq_len_, window_ = -1;
  std::vector<std::vector<i64>> rows_;  // rows of the window, or the one asked for last
};

// Sums over rows. Without lengths every sequence is one document.
struct DocumentCounts {
  double tokens = 0, useful = 0;  // all tokens, and those of documents
  double squares = 0;             // sum over documents of the square of their tokens
  double windowed = 0;  // sum over documents of their tokens, each times the model's window or all of them
  double seen = 0;      // the same under the causal mask: the keys that each of these tokens sees
  i64 most = 0;         // pieces of a micro-batch: documents and the padding behind them
  double useful_fraction() const { return useful / tokens; }
  // Keys that a token meets, the mean over all tokens and over the model's layers.
  double keys(const ModelSpec& m) const { return m.mean_of_layers(squares / tokens, windowed / tokens); }
};
// Counts a step's batch; where it has more than 65,536 rows, the first ones stand for all.
DocumentCounts document_counts(const Trial&);
// Counts rows that stand for a whole run, whatever its batch is: 65,536 padded rows, or packed ones in multiples of the
// kPackedRows that are filled together.
DocumentCounts run_document_counts(const Trial&);

// Share of a run's tokens that are of documents; 1 of a command, which pads and packs as it likes.
double useful_share(const Trial&);

// Keys that a token of the step's batch meets in attention, causality aside: seq_len, of packed documents their own
// tokens, and in layers with a window at most so many as it has; the mean over layers.
double keys_per_token(const Trial&);
double keys_per_token(const ModelSpec&, i64 seq_len);
// Under the causal mask: half of them, and in a layer with a window of w keys w - w^2 / (2 seq_len).
double causal_keys_per_token(const Trial&);

// Why the step does not run these documents, as a sentence; nullopt: it does.
std::optional<std::string> documents_objection(const Trial&);

}  // namespace sweep::shape
