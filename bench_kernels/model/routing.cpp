#include "bench_kernels/model/routing.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "bench_kernels/kernels/moe.h"
#include "bench_kernels/kernels/rows.h"
#include "bench_kernels/model/positions.h"

namespace sweep::model {
namespace {

using Counts = std::vector<std::int64_t>;

std::int64_t sum_of(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// Hot experts are the first eighth (Switch-like hot spots at a stated share); the others share the rest.
std::int64_t skewed_expert(const ModelSpec& m, const Options& o, std::int64_t choice) {
  const std::int64_t hot = std::max<std::int64_t>(1, m.experts / 8);
  const auto draw = static_cast<std::int64_t>(kernels::mix64(static_cast<std::uint64_t>(choice)) % 100);
  if (draw < o.hot_percent || hot == m.experts) return choice % hot;
  return hot + choice % (m.experts - hot);
}

Counts count_forced(const Counts& experts, std::int64_t number) {
  Counts counts(static_cast<std::size_t>(number), 0);
  for (const std::int64_t e : experts) ++counts[static_cast<std::size_t>(e)];
  return counts;
}

// Clamps each expert's token count to its capacity, for `tokens` tokens.
Counts limited(Counts counts, const ModelSpec& m, const Options& o, std::int64_t tokens) {
  if (o.capacity_percent == 0) return counts;
  const std::int64_t even = tokens * m.experts_per_token * o.capacity_percent;
  const std::int64_t capacity = (even + 100 * m.experts - 1) / (100 * m.experts);
  for (auto& count : counts) count = std::min(count, capacity);
  return counts;
}

// The peers' counts of the experts that this rank owns, when positions decide.
std::vector<Counts> foreseen(const StageContext& s, std::int64_t batch, std::int64_t tokens) {
  const std::int64_t ep = s.layout.ep(), local = s.spec.experts / ep;
  std::vector<Counts> incoming;
  for (std::int64_t peer = 0; peer < ep; ++peer) {
    const std::int64_t cp_rank = (s.layout.token_rank / ep * ep + peer) % s.layout.cp();
    const auto positions = local_positions(s.options.seq_len, cp_rank, s.layout.cp());
    const Counts all =
        limited(count_forced(forced_experts(s.spec, s.options, positions, batch), s.spec.experts), s.spec,
                s.options, tokens);
    const auto first = all.begin() + s.layout.expert->rank() * local;
    incoming.emplace_back(first, first + local);
  }
  return incoming;
}

// The same, asked of the peers.
std::vector<Counts> asked(const StageContext& s, const Counts& kept) {
  const std::int64_t ep = s.layout.ep(), local = s.spec.experts / ep;
  const auto options = at::TensorOptions(s.options.device).dtype(at::kLong);
  const at::Tensor mine = at::empty({s.spec.experts}, options),
                   all = at::empty({ep, s.spec.experts}, options);
  Counts values = kept;
  at::Tensor(mine).copy_(at::from_blob(values.data(), {s.spec.experts}, at::kLong), kReadAtOnce);
  s.layout.expert->all_gather(mine, all.view({-1})).wait();
  const at::Tensor owned = all.narrow(1, s.layout.expert->rank() * local, local).to(at::kCPU).contiguous();
  const auto* data = owned.const_data_ptr<std::int64_t>();
  std::vector<Counts> incoming;
  for (std::int64_t peer = 0; peer < ep; ++peer)
    incoming.emplace_back(data + peer * local, data + (peer + 1) * local);
  return incoming;
}

}  // namespace

std::int64_t Dispatch::sent() const {
  return sum_of(kept);
}

std::int64_t Dispatch::received() const {
  std::int64_t sum = 0;
  for (const auto& counts : incoming) sum += sum_of(counts);
  return sum;
}

std::vector<std::int64_t> Dispatch::send_splits(std::int64_t ep) const {
  const auto local = kept.size() / static_cast<std::size_t>(ep);
  Counts splits;
  for (std::size_t first = 0; first < kept.size(); first += local)
    splits.push_back(std::accumulate(kept.begin() + static_cast<std::ptrdiff_t>(first),
                                     kept.begin() + static_cast<std::ptrdiff_t>(first + local),
                                     std::int64_t{0}));
  return splits;
}

std::vector<std::int64_t> Dispatch::receive_splits() const {
  Counts splits;
  for (const auto& counts : incoming) splits.push_back(sum_of(counts));
  return splits;
}

std::int64_t Dispatch::rows_of(std::size_t local_expert) const {
  std::int64_t sum = 0;
  for (const auto& counts : incoming) sum += counts[local_expert];
  return sum;
}

std::vector<std::int64_t> Dispatch::expert_major() const {
  std::vector<std::int64_t> order;
  const std::size_t local = incoming.front().size();
  for (std::size_t e = 0; e < local; ++e) {
    std::int64_t start = 0;
    for (const auto& counts : incoming) {
      const std::int64_t first =
          start +
          std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(e), std::int64_t{0});
      for (std::int64_t i = 0; i < counts[e]; ++i) order.push_back(first + i);
      start += sum_of(counts);
    }
  }
  return order;
}

std::vector<std::int64_t> forced_experts(const ModelSpec& m, const Options& o,
                                         const std::vector<std::int64_t>& positions, std::int64_t batch) {
  Counts row;
  for (const std::int64_t position : positions) {
    const std::size_t begin = row.size();
    for (std::int64_t j = 0; j < m.experts_per_token; ++j) {
      const std::int64_t choice = position * m.experts_per_token + j;
      std::int64_t expert = o.routing == Routing::kSkewed ? skewed_expert(m, o, choice) : choice % m.experts;
      while (std::find(row.begin() + static_cast<std::ptrdiff_t>(begin), row.end(), expert) != row.end())
        expert = (expert + 1) % m.experts;  // a token's choices differ
      row.push_back(expert);
    }
  }
  Counts all;
  for (std::int64_t b = 0; b < batch; ++b) all.insert(all.end(), row.begin(), row.end());
  return all;
}

Dispatch route(const StageContext& s, const at::Tensor& probs, const at::Tensor& experts) {
  const std::int64_t tokens = experts.size(0), batch = tokens / s.local_seq();
  const bool learned = s.options.routing == Routing::kLearned && !experts.is_meta();
  Dispatch d;
  if (learned) {
    kernels::choose_experts(probs, experts);
    d.chosen = kernels::count_choices(experts, s.spec.experts);
    d.kept = limited(d.chosen, s.spec, s.options, tokens);
    d.incoming = asked(s, d.kept);
    return d;
  }
  const auto positions = local_positions(s.options.seq_len, s.layout.context->rank(), s.layout.cp());
  Counts forced = forced_experts(s.spec, s.options, positions, batch);
  if (!experts.is_meta())
    at::Tensor(experts).copy_(at::from_blob(forced.data(), experts.sizes(), at::kLong), kReadAtOnce);
  d.chosen = count_forced(forced, s.spec.experts);
  d.kept = limited(d.chosen, s.spec, s.options, tokens);
  d.incoming = foreseen(s, batch, tokens);
  return d;
}

}  // namespace sweep::model
