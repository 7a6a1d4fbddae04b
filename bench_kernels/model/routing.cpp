#include "bench_kernels/model/routing.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "bench_kernels/kernels/counting_allocator.h"
#include "bench_kernels/kernels/moe.h"
#include "bench_kernels/kernels/rows.h"
#include "bench_kernels/model/positions.h"
#include "bench_kernels/shape/family.h"

namespace sweep::model {
namespace {

using Counts = std::vector<std::int64_t>;

constexpr bool kWithoutWaiting = true;  // non_blocking of a copy

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

// Counts the rows that peers send to the experts of this rank. chosen: [ep][experts], the choices of each peer's `tokens`
// tokens.
void count_incoming(const StageContext& s, std::vector<Counts> chosen, std::int64_t tokens, Dispatch& d) {
  const std::int64_t local = s.spec.experts / s.layout.ep(), begin = s.layout.expert->rank() * local;
  d.wanted.assign(static_cast<std::size_t>(local), 0);
  for (Counts& counts : chosen) {
    for (std::int64_t e = 0; e < local; ++e)
      d.wanted[static_cast<std::size_t>(e)] += counts[static_cast<std::size_t>(begin + e)];
    const Counts served = limited(std::move(counts), s.spec, s.options, tokens);
    d.incoming.emplace_back(served.begin() + begin, served.begin() + begin + local);
  }
}

// The choices of all peers, [ep][experts], when positions decide.
std::vector<Counts> foreseen(const StageContext& s, std::int64_t batch) {
  const std::int64_t ep = s.layout.ep();
  std::vector<Counts> chosen;
  for (std::int64_t peer = 0; peer < ep; ++peer) {
    const std::int64_t cp_rank = (s.layout.token_rank / ep * ep + peer) % s.layout.cp();
    const auto positions = local_positions(s.options.seq_len, cp_rank, s.layout.cp());
    chosen.push_back(count_forced(forced_experts(s.spec, s.options, positions, batch), s.spec.experts));
  }
  return chosen;
}

// Pinned memory in between: where a GPU reads pageable memory itself (Grace), a copy that does not wait may begin after
// `values` is gone. The pool of pinned memory keeps its block until the copy has ended.
at::Tensor on_device(const Counts& values, at::IntArrayRef sizes, const at::TensorOptions& options) {
  at::Tensor out = at::empty(sizes, options);
  if (out.is_meta()) return out;
  const at::Tensor host = at::from_blob(const_cast<std::int64_t*>(values.data()), sizes, at::kLong);
  if (out.is_cpu()) return out.copy_(host);
  return out.copy_(memory::empty_on_host(sizes, options).copy_(host), kWithoutWaiting);
}

bool at_once(const StageContext& s) {
  const auto width = s.spec.intermediate_size / s.layout.tp();
  return s.options.grouped && s.spec.hidden_size % 8 == 0 && width % 8 == 0;
}

// Derives from the counts where rows stand and how they come in.
void complete(const StageContext& s, Route& r) {
  const std::int64_t local = s.spec.experts / s.layout.ep();
  const Dispatch& d = r.dispatch;
  const auto whole = at::TensorOptions(s.options.device).dtype(at::kLong);
  if (!s.layout.expert->alone()) r.major = on_device(d.expert_major(), {d.received()}, whole);
  Counts ends;
  for (std::int64_t e = 0; e < local; ++e) {
    r.groups.known.push_back(d.rows_of(static_cast<std::size_t>(e)));
    ends.push_back(r.groups.known.back() + (ends.empty() ? 0 : ends.back()));
  }
  r.groups.ends = on_device(ends, {local}, whole.dtype(at::kInt));
  r.groups.at_once = at_once(s);
  if (s.spec.router_aux_coef > 0)
    r.chosen = on_device(d.chosen, {s.spec.experts}, whole.dtype(kernels::accumulate_type(s.options.type)));
}

RoutePtr forced(const StageContext& s, std::int64_t tokens) {
  const std::int64_t batch = tokens / s.local_seq(), k = s.spec.experts_per_token;
  auto r = std::make_shared<Route>();
  Dispatch& d = r->dispatch;
  const auto positions = local_positions(s.options.seq_len, s.layout.context->rank(), s.layout.cp());
  const Counts experts = forced_experts(s.spec, s.options, positions, batch);
  d.chosen = count_forced(experts, s.spec.experts);
  d.kept = limited(d.chosen, s.spec, s.options, tokens);
  count_incoming(s, foreseen(s, batch), tokens, d);
  std::vector<Counts> served(static_cast<std::size_t>(s.spec.experts));
  for (std::size_t choice = 0; choice < experts.size(); ++choice) {
    Counts& of = served[static_cast<std::size_t>(experts[choice])];
    if (std::ssize(of) < d.kept[static_cast<std::size_t>(experts[choice])])
      of.push_back(static_cast<std::int64_t>(choice));
  }
  Counts order, rows, places(experts.size(), -1);
  for (const Counts& of : served) order.insert(order.end(), of.begin(), of.end());
  for (const std::int64_t choice : order) {
    places[static_cast<std::size_t>(choice)] = std::ssize(rows);
    rows.push_back(choice / k);
  }
  const auto whole = at::TensorOptions(s.options.device).dtype(at::kLong);
  r->experts = on_device(experts, {tokens, k}, whole);
  r->sent = {on_device(order, {d.sent()}, whole), on_device(rows, {d.sent()}, whole),
             on_device(places, {tokens * k}, whole)};
  complete(s, *r);
  return r;
}

// [ep][experts]: what the tokens of each peer chose. The one wait for the device.
std::vector<Counts> asked(const StageContext& s, const at::Tensor& experts) {
  const at::Tensor mine = at::empty({s.spec.experts}, experts.options());
  kernels::count_choices(experts, mine);
  at::Tensor all = mine;
  if (!s.layout.expert->alone()) {
    all = at::empty({s.layout.ep() * s.spec.experts}, mine.options());
    s.layout.expert->all_gather(mine, all).wait();
  }
  const at::Tensor here = all.to(at::kCPU);
  const auto* data = here.const_data_ptr<std::int64_t>();
  std::vector<Counts> out;
  for (std::int64_t peer = 0; peer < s.layout.ep(); ++peer)
    out.emplace_back(data + peer * s.spec.experts, data + (peer + 1) * s.spec.experts);
  return out;
}

void count_learned(const StageContext& s, Route& r, std::int64_t tokens) {
  std::vector<Counts> all = asked(s, r.experts);
  Dispatch& d = r.dispatch;
  d.chosen = all[static_cast<std::size_t>(s.layout.expert->rank())];
  d.kept = limited(d.chosen, s.spec, s.options, tokens);
  count_incoming(s, std::move(all), tokens, d);
}

// Where every choice is served here, the number of rows is known and nothing is asked: the device keeps where each
// expert's rows end, and the host reads the counts when it needs them.
void count_later(const StageContext& s, Route& r) {
  const at::Tensor counts = at::empty({s.spec.experts}, r.experts.options());
  kernels::count_choices(r.experts, counts);
  r.groups.ends = at::empty({s.spec.experts}, r.experts.options().dtype(at::kInt));
  kernels::end_choices(counts, r.groups.ends);
  r.groups.at_once = at_once(s);
  r.groups.arriving = std::make_shared<kernels::Arriving>(counts);
  if (s.spec.router_aux_coef > 0) r.chosen = counts.to(kernels::accumulate_type(s.options.type));
}

RoutePtr learned(const StageContext& s, const at::Tensor& probs, const at::Tensor& bias) {
  const std::int64_t tokens = probs.size(0), k = s.spec.experts_per_token;
  const bool all_here = s.layout.expert->alone() && s.options.capacity_percent == 0;
  auto r = std::make_shared<Route>();
  const auto whole = at::TensorOptions(s.options.device).dtype(at::kLong);
  r->experts = at::empty({tokens, k}, whole);
  kernels::choose_experts(probs, r->experts, gate_of(s.spec), bias);
  if (all_here)
    count_later(s, *r);
  else
    count_learned(s, *r, tokens);
  const std::int64_t sent = all_here ? tokens * k : r->dispatch.sent();
  r->sent.order = at::empty({sent}, whole);
  kernels::order_choices(r->experts, r->dispatch.chosen, r->dispatch.kept, r->sent.order);
  r->sent.tokens = r->sent.order.div(k, "floor");
  r->sent.places = at::full({tokens * k}, -1, whole).scatter_(0, r->sent.order, at::arange(sent, whole));
  if (!all_here) complete(s, *r);
  return r;
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

kernels::Gate gate_of(const ModelSpec& m) {
  const shape::Family& family = shape::family_of(m);
  return {family.sigmoid_router, family.normalized_weights, m.routed_scaling, m.expert_groups,
          m.groups_per_token};
}

RoutePtr route(const StageContext& s, const at::Tensor& probs, const at::Tensor& bias) {
  const std::int64_t tokens = probs.size(0);
  if (s.options.routing == Routing::kLearned)
    return probs.is_meta() ? forced(s, tokens) : learned(s, probs, bias);
  RoutePtr& known = s.routes->by_tokens[tokens];
  if (!known) known = forced(s, tokens);
  return known;
}

}  // namespace sweep::model
