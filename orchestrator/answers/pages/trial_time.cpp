// A trial's time: the parts of a step by rank, the schedule of its pipeline, step by step, and the load meanwhile.
#include <fmt/format.h>

#include <algorithm>

#include "bench_kernels/shape/parallel_dims.h"
#include "bench_kernels/shape/schedule_times.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/report_parts.h"
#include "orchestrator/answers/pages/trial_parts.h"
#include "orchestrator/answers/pages/vega_charts.h"
#include "orchestrator/answers/statistics/time_parts.h"
#include "orchestrator/metrics/steps.h"
#include "schema/rehearsal.h"

namespace sweep::answers::parts {
namespace {

constexpr std::size_t kMostRanks = 64, kMostSpans = 4000;

std::string small(const std::string& text) {
  return fmt::format("<p class=\"small\">{}</p>\n", escape_xml(text));
}

std::string ms(double value) {
  return significant(value) + " ms";
}

// "rank 3, stage 1 of the pipeline"
std::string rank_name(i64 rank, const Trial& trial) {
  const auto dims = trial.pp > 1 ? shape::ParallelDims::make(trial) : fail("no pipeline");
  if (!dims || rank >= dims->world()) return fmt::format("rank {}", rank);
  return fmt::format("rank {}, stage {}", rank, dims->place(rank).pp);
}

// The ranks to draw: all, or as many as there is room for, evenly.
std::vector<const RankRecord*> ranks_to_draw(const std::vector<RankRecord>& records) {
  std::vector<const RankRecord*> timed, out;
  for (const RankRecord& record : records)
    if (rank_times(record, false).step_ms) timed.push_back(&record);
  const std::size_t each = (timed.size() + kMostRanks - 1) / kMostRanks;
  for (std::size_t i = 0; i < timed.size(); i += each) out.push_back(timed[i]);
  return out;
}

// The mean times of one stage of the pipeline, over the ranks that have it.
struct StageMean {
  double forward = 0, backward = 0, without_update = 0;
  i64 ranks = 0;
};

std::vector<StageMean> stage_means(const TrialPage& page) {
  const Trial& trial = page.view.entry.trial;
  const auto dims = shape::ParallelDims::make(trial);
  std::vector<StageMean> out(static_cast<std::size_t>(trial.pp));
  for (const RankRecord& record : page.records.records) {
    const Metrics times = rank_times(record, true);
    if (!dims || record.rank >= dims->world() || !times.forward_ms || !times.backward_ms) continue;
    StageMean& stage = out[static_cast<std::size_t>(dims->place(record.rank).pp)];
    stage.forward += *times.forward_ms, stage.backward += *times.backward_ms;
    stage.without_update += *times.step_ms - times.optimizer_ms.value_or(0);
    ++stage.ranks;
  }
  for (StageMean& stage : out)
    for (double* sum : {&stage.forward, &stage.backward, &stage.without_update})
      *sum /= static_cast<double>(std::max<i64>(stage.ranks, 1));
  return out;
}

// The kinds of the schedule's spans have the colours of the same parts in the chart by rank.
const std::vector<std::string>& span_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> out(kTimeParts.begin(), kTimeParts.end());
    out.emplace_back("gradients of weights");
    return out;
  }();
  return kinds;
}
std::size_t kind_of(shape::Act act) {
  if (act == shape::Act::kForward) return kForwardPart;
  return act == shape::Act::kBackward ? kBackwardPart : kTimeParts.size();
}

void add_spans(SpanChart& chart, std::size_t row, const std::vector<shape::Span>& spans, i64 chunks) {
  for (const shape::Span& span : spans) {
    const std::size_t kind = kind_of(span.action.act);
    const std::string chunk = chunks > 1 ? fmt::format(", chunk {}", span.action.chunk) : "";
    chart.spans.push_back(
        {row, kind, span.start, span.end,
         fmt::format("{} of micro-batch {}{}: {} to {} ms", span_kinds()[kind], span.action.micro, chunk,
                     significant(span.start), significant(span.end))});
  }
}

}  // namespace

std::string step_by_rank(const TrialPage& page) {
  const Trial& trial = page.view.entry.trial;
  SpanChart chart{.title = "Where the time of a step goes, by rank",
                  .x = "ms of a step",
                  .rows = {},
                  .kinds = {kTimeParts.begin(), kTimeParts.end()}};
  const auto shown = ranks_to_draw(page.records.records);
  i64 steps = 0;
  bool waited = false;
  for (const RankRecord* record : shown) {
    const Metrics times = rank_times(*record, trial.pp > 1);
    const auto parts = time_parts(times, trial);
    if (!parts) continue;
    steps = std::max(steps, times.timed_steps.value_or(0)), waited |= times.exposed_comm_ms.has_value();
    double from = 0;
    for (std::size_t kind = 0; kind < parts->size(); ++kind) {
      const double to = from + (*parts)[kind];
      chart.spans.push_back(
          {chart.rows.size(), kind, from, to,
           fmt::format("rank {}: {} {}", record->rank, kTimeParts[kind], ms((*parts)[kind]))});
      from = to;
    }
    chart.rows.push_back(fmt::format("{}: {}", rank_name(record->rank, trial), ms(*times.step_ms)));
  }
  const std::string drawn = figure(chart);
  if (drawn.empty()) return "";
  std::string text = fmt::format(
      "Means over {} timed step{} of each rank. A rank records how much of each part a step had, not when: "
      "within a "
      "bar the order is not recorded.",
      steps, steps == 1 ? "" : "s");
  if (!waited) text += " Communication was not measured apart: it is inside backward.";
  if (shown.size() < page.records.records.size())
    text += fmt::format(" {} of {} ranks are drawn.", chart.rows.size(), page.records.records.size());
  return drawn + small(text);
}

std::string pipeline_schedule(const TrialPage& page) {
  const Trial& trial = page.view.entry.trial;
  if (trial.pp < 2 || trial.workload != Workload::kStep) return "";
  const auto means = stage_means(page);
  if (std::ranges::any_of(means, [](const StageMean& stage) { return stage.ranks == 0; })) return "";
  const shape::Pipeline pipeline = shape::Pipeline::of(trial);
  if (pipeline.micros * pipeline.stages() * 3 > i64(kMostSpans)) return "";
  std::vector<shape::Costs> costs;
  std::vector<shape::ActionList> order;
  SpanChart chart{.title = "The pipeline's schedule", .x = "ms of a step", .rows = {}, .kinds = span_kinds()};
  double measured = 0;
  for (i64 rank = 0; rank < pipeline.ranks; ++rank) {
    const StageMean& mean = means[static_cast<std::size_t>(rank)];
    const double micros = static_cast<double>(pipeline.micros);
    costs.push_back({mean.forward / micros, mean.backward / micros, mean.backward / micros / 2});
    order.push_back(shape::computations(pipeline, rank));
    chart.rows.push_back(fmt::format("stage {}", rank));
    measured = std::max(measured, mean.without_update);
  }
  const auto spans = shape::run_computations(pipeline, order, costs);
  double end = 0;
  for (std::size_t rank = 0; rank < spans.size(); ++rank) {
    add_spans(chart, rank, spans[rank], pipeline.chunks);
    if (!spans[rank].empty()) end = std::max(end, spans[rank].back().end);
  }
  const std::string drawn = figure(chart);
  if (drawn.empty()) return "";
  return drawn + small(fmt::format("No recording: the order is that of the schedule ({}, {} micro-batches), "
                                   "the lengths are the mean times "
                                   "that each stage measured, evenly over its micro-batches, and messages "
                                   "take no time. So it ends after {}; "
                                   "measured without the update were {}.",
                                   to_string(trial.schedule), pipeline.micros, ms(end), ms(measured)));
}

std::string steps(const TrialPage& page) {
  const Trial& trial = page.view.entry.trial;
  const auto whole = metrics::whole_steps(page.records.records, metrics::ranks_needed(trial, trial.world()));
  LineChart times{.title = "Time of each step", .x = "step", .y = "ms"};
  times.series = {{"forward", {}}, {"backward", {}}, {"step", {}}, {"optimizer", {}}};  // colours as above
  times.counts = true;
  LineChart loss{.title = "Loss of each step", .x = "step", .y = "loss"};
  loss.series = {{"loss", {}}};
  loss.counts = true;
  double number = 0;
  for (const auto& step : whole) {
    const std::string name = fmt::format("step {}{}", number, step.warmup ? " (warm-up)" : "");
    const i64 of[] = {step.forward_ns, step.backward_ns, step.step_ns, step.optimizer_ns};
    for (std::size_t i = 0; i < std::size(of); ++i)
      if (of[i] > 0)
        times.series[i].second.push_back(
            {number, double(of[i]) / 1e6,
             fmt::format("{}: {} {}", name, times.series[i].first, ms(double(of[i]) / 1e6))});
    if (step.loss)
      loss.series[0].second.push_back(
          {number, *step.loss, fmt::format("{}: loss {}", name, significant(*step.loss))});
    ++number;
  }
  if (whole.size() < 2) return "";
  const auto warm = std::ranges::count_if(whole, [](const auto& step) { return step.warmup; });
  return figure(times) + figure(loss) +
         small(fmt::format(
             "The slowest rank of each step. {} of {} steps are warm-up, at the left of each repeat, and "
             "count in no figure above.",
             warm, whole.size()));
}

std::string load(const TrialPage& page) {
  if (!page.records.end || is_rehearsal(page.sweep)) return "";  // a phantom GPU has no load
  const auto& nodes = page.records.end->load.nodes;
  struct Kind {
    const char *title, *unit;
    const std::vector<double> NodeLoad::*of;
    double factor;
  };
  const Kind kinds[] = {
      {"Utilisation", "%", &NodeLoad::util, 1},
      {"Memory of the fullest GPU or rank", "GiB", &NodeLoad::memory_bytes, 1.0 / (1 << 30)},
      {"Power of a GPU", "W", &NodeLoad::power_w, 1}};
  std::string out;
  for (const Kind& kind : kinds) {
    LineChart chart{.title = kind.title, .x = "seconds since the attempt began", .y = kind.unit};
    for (const NodeLoad& node : nodes) {
      auto& series =
          chart.series.emplace_back(node.host.empty() ? "its node" : node.host, std::vector<LinePoint>{});
      const auto& values = node.*kind.of;
      for (std::size_t i = 0; i < std::min(values.size(), node.at_s.size()); ++i)
        series.second.push_back(
            {node.at_s[i], values[i] * kind.factor,
             fmt::format("{}: {} {} at {} s", series.first, significant(values[i] * kind.factor), kind.unit,
                         significant(node.at_s[i]))});
    }
    if (const std::string drawn = figure(chart); !drawn.empty())
      out += fmt::format("<h3>{} [{}]</h3>\n", kind.title, kind.unit) + drawn;
  }
  return out;
}

}  // namespace sweep::answers::parts
