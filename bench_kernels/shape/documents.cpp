#include "bench_kernels/shape/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace sweep::shape {
namespace {

constexpr i64 kCountedRows = 65'536;
constexpr i64 kRunTokens = 1 << 22;         // tokens of the packed rows that stand for a run
constexpr i64 kMostPackedTokens = 1 << 20;  // drawing documents of one token takes seconds then

std::uint64_t document_number(i64 group, i64 document) {
  return static_cast<std::uint64_t>(group) << 32 ^ static_cast<std::uint64_t>(document);
}

}  // namespace

DocumentRows::DocumentRows(const Trial& t)
    : lengths_(*Lengths::parse(t.lengths)), packed_(t.packing), seq_len_(t.seq_len), rows_(1) {}

const std::vector<i64>& DocumentRows::row(i64 number) {
  if (!packed_) {
    rows_[0] = {std::min(seq_len_, lengths_.draw(document_number(number, 0)))};
    return rows_[0];
  }
  if (number / kPackedRows != window_) pack(number / kPackedRows);
  return rows_[static_cast<std::size_t>(number % kPackedRows)];
}

void DocumentRows::pack(i64 window) {
  window_ = window;
  rows_.assign(kPackedRows, {});
  std::vector<i64> room(kPackedRows, seq_len_);
  auto open = room.begin();  // the first row that is not full
  for (i64 document = 0;; ++document) {
    const i64 tokens = std::min(seq_len_, lengths_.draw(document_number(window, document)));
    while (open != room.end() && *open == 0) ++open;
    const auto fits = std::find_if(open, room.end(), [&](i64 left) { return left >= tokens; });
    if (fits == room.end()) return;
    rows_[static_cast<std::size_t>(fits - room.begin())].push_back(tokens);
    *fits -= tokens;
  }
}

namespace {

// Keys that the tokens of a document of n tokens see in a window of w.
double causal(double n, double w) {
  return n * w - w * w / 2;
}

DocumentCounts counted(const Trial& t, i64 all) {
  DocumentCounts out;
  DocumentRows rows(t);
  const i64 counted = std::clamp<i64>(all, 1, kCountedRows);
  i64 pieces = 0;
  const double window = static_cast<double>(t.spec.sliding_window.value_or(t.seq_len));
  for (i64 number = 0; number < counted; ++number) {
    if (number % t.micro_batch_size == 0) pieces = 0;
    double useful = 0;
    for (const i64 tokens : rows.row(number)) {
      const double n = static_cast<double>(tokens), w = std::min(n, window);
      useful += n, out.squares += n * n, out.windowed += n * w, out.seen += causal(n, w), ++pieces;
    }
    out.useful += useful;
    if (useful < static_cast<double>(t.seq_len)) ++pieces;
    out.most = std::max(out.most, pieces);
  }
  out.tokens = static_cast<double>(counted) * static_cast<double>(t.seq_len);
  const double share = static_cast<double>(all) / static_cast<double>(counted);
  for (double* sum : {&out.tokens, &out.useful, &out.squares, &out.windowed, &out.seen}) *sum *= share;
  return out;
}

DocumentCounts without_documents(const Trial& t, i64 rows) {
  const double tokens = static_cast<double>(rows) * static_cast<double>(t.seq_len);
  const double length = static_cast<double>(t.seq_len);
  const double window = static_cast<double>(std::min(t.spec.sliding_window.value_or(t.seq_len), t.seq_len));
  const double sequences = static_cast<double>(rows);
  return {tokens,
          tokens,
          tokens * length,
          tokens * window,
          sequences * causal(length, window),
          t.micro_batch_size};
}

// A plan asks this several times for each of many trials that differ in other axes, or in turn in these.
class LatestCounts {
 public:
  DocumentCounts of(const Trial& t, i64 rows) {
    if (t.lengths.empty() || documents_objection(t)) return without_documents(t, rows);
    const Key key{t.lengths, t.packing,          t.seq_len,
                  rows,      t.micro_batch_size, t.spec.sliding_window.value_or(0)};
    if (const auto known = counts_.find(key); known != counts_.end()) return known->second;
    if (counts_.size() >= kMostKept) counts_.clear();
    return counts_.emplace(key, counted(t, rows)).first->second;
  }

 private:
  static constexpr std::size_t kMostKept = 64;
  using Key = std::tuple<std::string, bool, i64, i64, i64, i64>;
  std::map<Key, DocumentCounts> counts_;
};

}  // namespace

DocumentCounts document_counts(const Trial& t) {
  thread_local LatestCounts latest;
  return latest.of(t, t.dp * t.grad_accum * t.micro_batch_size);
}

DocumentCounts run_document_counts(const Trial& t) {
  thread_local LatestCounts latest;
  const i64 windows = std::clamp<i64>(kRunTokens / (t.seq_len * kPackedRows), 1, kCountedRows / kPackedRows);
  return latest.of(t, t.packing ? windows * kPackedRows : kCountedRows);
}

double useful_share(const Trial& t) {
  return t.workload == Workload::kCommand ? 1 : run_document_counts(t).useful_fraction();
}

double keys_per_token(const Trial& t) {
  if (!t.packing || t.lengths.empty()) return keys_per_token(t.spec, t.seq_len);
  return document_counts(t).keys(t.spec);
}

double keys_per_token(const ModelSpec& m, i64 seq_len) {
  const i64 window = std::min(m.sliding_window.value_or(seq_len), seq_len);
  return m.mean_of_layers(static_cast<double>(seq_len), static_cast<double>(window));
}

double causal_keys_per_token(const Trial& t) {
  const bool packed = t.packing && !t.lengths.empty();
  const DocumentCounts counts = packed ? document_counts(t) : without_documents(t, 1);
  return t.spec.mean_of_layers(counts.squares / counts.tokens / 2, counts.seen / counts.tokens);
}

std::optional<std::string> documents_objection(const Trial& t) {
  if (t.lengths.empty()) {
    if (!t.packing) return {};
    return "packing needs documents that do not fill a sequence; give lengths (lognormal MEAN SIGMA, file "
           "PATH)";
  }
  if (const auto lengths = Lengths::parse(t.lengths); !lengths) return lengths.error().message;
  if (!t.packing) return {};
  if (t.seq_len > kMostPackedTokens)
    return fmt::format("packing with seq_len {}; at most {}", t.seq_len, kMostPackedTokens);
  if (t.cp > 1)
    return fmt::format(
        "packing with cp {}: a document would lie on several ranks, whose keys and values travel by "
        "sequence; "
        "take cp 1, or packing false",
        t.cp);
  if (t.attention == AttentionKind::kSdpa || t.attention == AttentionKind::kCudnn)
    return fmt::format("packing with attention {}: it takes no cumulative lengths; take flash, math or auto",
                       to_string(t.attention));
  return {};
}

}  // namespace sweep::shape
