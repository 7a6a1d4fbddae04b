// docs/metrics.md states each formula with its source; a change of meaning there or here raises
// kFormulaVersion.
#include "orchestrator/metrics/derive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/quantiles.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/documents.h"
#include "orchestrator/metrics/around.h"
#include "orchestrator/metrics/counted.h"
#include "orchestrator/metrics/steps.h"
#include "schema/codec.h"
#include "schema/frame.h"
#include "schema/labels.h"

namespace sweep::metrics {
namespace {

double real(i64 n) {
  return static_cast<double>(n);
}

// Keeps a number only if it is one.
std::optional<double> finite(std::optional<double> x) {
  return x && std::isfinite(*x) ? x : std::nullopt;
}

std::optional<double> ratio(double numerator, double denominator) {
  if (!(denominator > 0)) return std::nullopt;
  return finite(numerator / denominator);
}

void times(Metrics& m, const Steps& steps) {
  if (!steps.step.empty()) m.timed_steps = static_cast<i64>(steps.step.size());
  m.step_ms = median(steps.step);
  m.step_ms_iqr = interquartile_range(steps.step);
  if (const auto interval = median_interval(steps.step)) {
    m.step_ms_ci_low = interval->first;
    m.step_ms_ci_high = interval->second;
  }
  m.forward_ms = median(steps.forward);
  m.backward_ms = median(steps.backward);
  m.optimizer_ms = median(steps.optimizer);
  m.exposed_comm_ms = median(steps.exposed_comm);
  m.data_ms = median(steps.data);
}

// LLMForge's form: 2 x 3 x tokens of the device x all parameters, over forward and backward time only.
std::optional<double> mfu_fwd_bwd(const Trial& t, const Steps& steps, double peak) {
  const auto ms = median(steps.forward_backward);
  if (t.pp > 1 || !ms) return std::nullopt;
  const double tokens = real(t.seq_len) * real(t.micro_batch_size) * real(t.grad_accum);
  const double parameters = real(shape::parameter_count(t.spec)) / (real(t.tp) * real(t.pp) * real(t.cp));
  return ratio(2 * 3 * tokens * parameters, *ms / 1e3 * peak);
}

// Everything that follows from tokens per second, the configuration and the catalogues. Documents of our own step
// are known; another program pads and packs as it likes. A model whose
// dimensions are not known has no FLOPs.
void follow_rate(Metrics& m, const Trial& t) {
  const auto hardware = shape::find_hardware(t.hardware);
  const auto peak = hardware ? hardware->peak_for(t.precision, t.tf32) : std::nullopt;
  m.peak_flops = peak;
  if (!m.tokens_per_s || t.world() < 1) return;
  m.tokens_per_s_gpu = *m.tokens_per_s / real(t.world());
  m.mt_per_hour = *m.tokens_per_s * 3600 / 1e6;
  if (m.useful_fraction) {
    m.useful_tokens_per_s = *m.tokens_per_s * *m.useful_fraction;
    m.useful_tokens_per_s_gpu = *m.tokens_per_s_gpu * *m.useful_fraction;
  }
  if (!m.usd_per_node_hour && hardware && hardware->price)
    m.usd_per_node_hour = hardware->price->usd_per_node_hour;
  if (const auto price =
          m.usd_per_node_hour ? shape::published_price(t.hardware, *m.usd_per_node_hour) : std::nullopt)
    m.price_date = price->date;
  if (m.usd_per_node_hour) m.cost_per_mt = ratio(*m.usd_per_node_hour * real(t.nodes), *m.mt_per_hour);
  if (m.cost_per_mt && m.useful_fraction) m.useful_cost_per_mt = ratio(*m.cost_per_mt, *m.useful_fraction);
  if (t.spec.layers < 1) return;
  const double model_flops = shape::model_flops_per_token(t) * *m.tokens_per_s_gpu;
  m.tflops_gpu = model_flops / 1e12;
  if (!peak) return;
  m.mfu = ratio(model_flops, *peak);
  if (m.useful_fraction) m.useful_mfu = ratio(shape::useful_flops_per_token(t) * *m.tokens_per_s_gpu, *peak);
  m.hfu = ratio(shape::hardware_flops_per_token(t) * *m.tokens_per_s_gpu, *peak);
}

std::optional<double> tokens_per_s(const Trial& t, double step_ms) {
  return ratio(real(t.global_batch_size) * real(t.seq_len), step_ms / 1e3);
}

// True if the trainer reports nothing itself.
bool is_from_log(const RankRecord& record) {
  return record.effective.report == "from_log";
}

// Tokens of a command's step: what its ranks reported, of which those of a tensor-parallel or pipeline group
// are the same ones. Ranks with a silent log have as many as those whose log tells them; a trainer that reports
// by itself on some ranks only leaves the tokens of the others unknown. Then only a grid with a model says what
// the batch axes mean to the program.
// A grid without a model may still say how many tokens a step has. Without the list of axes it said nothing.
bool states_its_tokens(std::string_view labels) {
  return label_members(labels).contains(kLabelAxes) && knows_axis(labels, "seq_len") &&
         (knows_axis(labels, "micro_batch_size") || knows_axis(labels, "global_batch_size"));
}

std::optional<double> command_tokens(const Trial& t, std::span<const RankRecord> records, i64 processes) {
  double tokens = 0;
  i64 ranks = 0;
  bool logged = true;
  for (const RankRecord& r : records) {
    if (r.samples.empty() || r.samples.back().tokens <= 0) continue;
    tokens += real(r.samples.back().tokens), ++ranks;
    logged = logged && is_from_log(r);
  }
  if (ranks > 0 && (logged || ranks >= processes))
    return tokens / real(ranks) * real(std::max(ranks, processes)) / (real(t.tp) * real(t.pp));
  if (t.spec.layers < 1 && !states_its_tokens(t.labels)) return std::nullopt;
  return real(t.global_batch_size) * real(t.seq_len);
}

// The time of the ranks' timed steps that is neither computation nor the optimizer nor a wait for data, over all but
// the optimizer and that wait.
std::optional<double> bubble(const Trial& t, std::span<const RankRecord> records) {
  if (t.pp == 1) return std::nullopt;
  double waited = 0, all = 0;
  for (const RankRecord& r : records)
    for (const StepSample& s : r.samples) {
      if (s.warmup || s.forward_ns <= 0) continue;
      const i64 passes = s.step_ns - s.optimizer_ns - s.data_ns.value_or(0);
      waited += real(passes - s.forward_ns - s.backward_ns);
      all += real(passes);
    }
  return ratio(waited, all);
}

void rates(Metrics& m, const Trial& t, const Steps& steps, std::span<const RankRecord> records,
           i64 processes) {
  if (m.step_ms && t.workload == Workload::kCommand) {
    const auto tokens = command_tokens(t, records, processes);
    if (tokens) m.tokens_per_s = ratio(*tokens, *m.step_ms / 1e3);
  } else if (m.step_ms && t.world() >= 1) {
    m.tokens_per_s = tokens_per_s(t, *m.step_ms);
    m.useful_fraction = shape::run_document_counts(t).useful_fraction();
  }
  follow_rate(m, t);
  if (m.tokens_per_s && m.peak_flops) m.mfu_fwd_bwd = mfu_fwd_bwd(t, steps, *m.peak_flops);
}

void raise(std::optional<i64>& highest, std::optional<i64> value) {
  if (value) highest = std::max(highest.value_or(*value), *value);
}

void memory(Metrics& m, std::span<const RankRecord> records) {
  const RankRecord* earliest_oom = nullptr;
  for (const RankRecord& r : records) {
    const bool higher = r.peak_allocated_bytes && r.peak_allocated_bytes > m.peak_allocated_bytes;
    const bool same_but_lower_rank =
        r.peak_allocated_bytes && r.peak_allocated_bytes == m.peak_allocated_bytes && r.rank < *m.peak_rank;
    if (higher || same_but_lower_rank) m.peak_rank = r.rank;
    raise(m.peak_allocated_bytes, r.peak_allocated_bytes);
    raise(m.peak_reserved_bytes, r.peak_reserved_bytes);
    raise(m.host_peak_rss_bytes, r.host_peak_rss_bytes);
    if (r.ooms) m.ooms = m.ooms.value_or(0) + *r.ooms;
    if (r.alloc_retries) {  // the allocator counts them; those of the timed steps are in the samples
      i64 timed = 0;
      for (const StepSample& s : r.samples) timed += s.warmup ? 0 : s.alloc_retries;
      m.alloc_retries = m.alloc_retries.value_or(0) + timed;
    }
    const bool earlier = !earliest_oom || r.ended_unix_ns < earliest_oom->ended_unix_ns;
    if (r.outcome == Outcome::kOom && r.oom_asked_bytes && earlier) earliest_oom = &r;
  }
  if (earliest_oom) m.oom_asked_bytes = earliest_oom->oom_asked_bytes;
}

struct SentColumns {
  const char* strategy;
  std::optional<i64> Metrics::*bytes;
  std::optional<i64> Metrics::*calls;
};
constexpr SentColumns kSent[] = {{"dp", &Metrics::sent_bytes_dp, &Metrics::calls_dp},
                                 {"tp", &Metrics::sent_bytes_tp, &Metrics::calls_tp},
                                 {"pp", &Metrics::sent_bytes_pp, &Metrics::calls_pp},
                                 {"cp", &Metrics::sent_bytes_cp, &Metrics::calls_cp},
                                 {"ep", &Metrics::sent_bytes_ep, &Metrics::calls_ep}};

void sent(Metrics& m, std::span<const RankRecord> records) {
  for (const RankRecord& r : records) {
    i64 all = 0;
    for (const SentTraffic& s : r.sent) {
      all += s.bytes;
      for (const SentColumns& c : kSent)
        if (s.strategy == c.strategy) raise(m.*c.bytes, s.bytes), raise(m.*c.calls, s.calls);
    }
    if (!r.sent.empty()) raise(m.sent_bytes, all);
  }
}

void raise_real(std::optional<double>& highest, std::optional<double> value) {
  if (const auto number = finite(value)) highest = std::max(highest.value_or(*number), *number);
}

// Every rank skips the same steps and has the same scale; experts differ.
void steps_said(Metrics& m, std::span<const RankRecord> records) {
  for (const RankRecord& r : records) {
    raise_real(m.expert_load, r.expert_load);
    raise_real(m.loss_scale, r.loss_scale);
    raise(m.skipped_steps, r.skipped_steps);
  }
}

void losses(Metrics& m, std::span<const RankRecord> records) {
  const auto steps = whole_steps(records, 1);
  if (steps.empty()) return;
  m.loss_first = finite(steps.front().loss);
  m.loss_last = finite(steps.back().loss);
}

// Applies to rehearsed trials only. Their load follows from the modelled clocks of all ranks: they are too
// short for the agent's samples.
void counted(Metrics& m, std::span<const RankRecord> records) {
  double busy = 0;
  i64 ranks = 0;
  for (const RankRecord& r : records) {
    if (const auto share = guessed_share(r)) raise_real(m.step_guessed_share, *share);
    const auto step = counted_step(r);
    if (!step) continue;
    raise(m.step_launches, step->launches);
    raise(m.step_host_syncs, step->host_syncs);
    raise_real(m.step_host_ms, real(step->host_work_ns) / 1e6);
    raise(m.pinned_bytes, step->pinned_bytes);
    if (step->device_ns <= 0) continue;
    busy += std::min(1.0, real(step->busy_ns) / real(step->device_ns));
    ++ranks;
  }
  if (ranks == 0) return;
  m.util_mean = 100 * busy / real(ranks);
  m.util_sd.reset();
}

// A GPU's load comes from the agent alone: the load of the processor is no measure of it.
void utilisation(Metrics& m, const Trial& t, std::span<const RankRecord> records, const AttemptEnd* end) {
  if (end) {
    m.util_mean = finite(end->util_mean);
    m.util_sd = finite(end->util_sd);
    m.power_mean_w = finite(end->power_mean_w);
    if (m.power_mean_w && m.tokens_per_s_gpu)
      m.tokens_per_joule = ratio(*m.tokens_per_s_gpu, *m.power_mean_w);
    m.sm_clock_mhz = finite(end->sm_clock_mhz);
    if (!end->throttle.empty()) m.throttle = end->throttle;
    m.neighbours = end->neighbours;
  }
  if (m.util_mean || t.hardware != "cpu") return;
  double sum = 0;
  i64 n = 0;
  for (const RankRecord& r : records)
    if (const auto percent = finite(r.cpu_percent)) {
      sum += *percent;
      ++n;
    }
  if (n > 0) m.util_mean = sum / real(n);
}

}  // namespace

Metrics derive(const Trial& t, std::span<const RankRecord> records, const AttemptEnd* end,
               std::optional<double> usd_per_node_hour, std::optional<i64> ranks) {
  Metrics m;
  m.usd_per_node_hour = usd_per_node_hour;
  m.formula_version = kFormulaVersion;
  const i64 processes = ranks.value_or(t.world());
  const Steps steps = timed_steps(records, ranks_needed(t, processes));
  times(m, steps);
  if (m.timed_steps) m.ranks_reported = ranks_with_timed_steps(records);
  m.bubble = bubble(t, records);
  rates(m, t, steps, records, processes);
  add_around(m, t, records);
  memory(m, records);
  losses(m, records);
  sent(m, records);
  steps_said(m, records);
  utilisation(m, t, records, end);
  counted(m, records);
  std::optional<i64> startup;
  for (const RankRecord& r : records) raise(startup, r.startup_ns);
  if (startup) m.startup_ms = real(*startup) / 1e6;
  return m;
}

Metrics derive_from_rate(const Trial& t, const Metrics& stated) {
  Metrics m = stated;
  m.formula_version = kFormulaVersion;
  const auto per_rank = m.tokens_per_s_gpu;
  if (!m.tokens_per_s && per_rank) m.tokens_per_s = *per_rank * real(t.world());
  if (!m.tokens_per_s && m.step_ms) m.tokens_per_s = tokens_per_s(t, *m.step_ms);
  const double of_documents = shape::run_document_counts(t).useful_fraction();
  const bool documents_known = !t.lengths.empty() && !shape::documents_objection(t);
  if (!m.useful_fraction && documents_known) m.useful_fraction = of_documents;
  follow_rate(m, t);
  // How many FLOPs are useful follows from the documents, and another share of tokens is not theirs.
  constexpr double kRounding = 0.01;
  if (m.useful_fraction && std::abs(*m.useful_fraction - of_documents) > kRounding) m.useful_mfu.reset();
  if (per_rank) m.tokens_per_s_gpu = per_rank;
  return m;
}

std::optional<std::string> never_updated(const Metrics& m) {
  if (m.timed_steps || m.skipped_steps.value_or(0) == 0) return std::nullopt;
  return fmt::format(
      "none of the {} timed steps updated the model: each had a gradient that was not finite (loss scale "
      "after the last: {:g}); give more warmup_steps, or a lower initial_scale_power",
      *m.skipped_steps, m.loss_scale.value_or(0));
}

std::optional<std::string> beyond_peak(const Trial& t, const Metrics& m) {
  if (!m.tflops_gpu || !m.peak_flops || !m.mfu) return std::nullopt;
  const double highest = std::max(*m.mfu, m.hfu.value_or(0));
  if (highest <= 1) return std::nullopt;
  return fmt::format(
      "a step of {:.4g} ms would be {:.4g} TFLOP/s per rank, {:.2f} times what {} can do in {} ({:.4g} "
      "TFLOP/s): its "
      "GPU did not do this work, or is not the hardware declared",
      m.step_ms.value_or(0), *m.tflops_gpu * highest / *m.mfu, highest, t.hardware, t.precision,
      *m.peak_flops / 1e12);
}

}  // namespace sweep::metrics
