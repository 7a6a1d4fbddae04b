#include "orchestrator/answers/tables/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/text.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"
#include "bench_kernels/shape/documents.h"
#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/json_values.h"
#include "orchestrator/plan/planner.h"
#include "schema/codec.h"

namespace sweep::answers {
namespace {

constexpr double kNoPrice = std::numeric_limits<double>::infinity();
constexpr double kHoursOfDay = 24, kSecondsOfHour = 3600, kGibibyte = 1024.0 * 1024 * 1024;

// The options that fit by the prediction and have a predicted rate.
std::vector<Choice> choices_of(std::span<const PlanEntry> entries, double tokens,
                               const std::map<std::string, double>& prices) {
  std::vector<Choice> out;
  for (const PlanEntry& entry : entries) {
    const Trial& t = entry.trial;
    const auto hardware = shape::find_hardware(t.hardware);
    if (!entry.admitted || !hardware || !entry.predicted.step_ms || plan::memory_share(entry).value_or(0) > 1)
      continue;
    Choice o{&entry};
    o.tokens_per_s = 1e3 * static_cast<double>(t.global_batch_size) * static_cast<double>(t.seq_len) /
                     *entry.predicted.step_ms;
    o.useful_tokens_per_s = o.tokens_per_s * shape::useful_share(t);
    o.hours = tokens / o.useful_tokens_per_s / kSecondsOfHour;
    const auto own = prices.find(t.hardware);
    if (own != prices.end())
      o.usd = own->second * o.hours * static_cast<double>(t.nodes);
    else if (hardware->price)
      o.usd = hardware->price->usd_per_node_hour * o.hours * static_cast<double>(t.nodes);
    out.push_back(o);
  }
  return out;
}

std::span<const Choice> shown_of(const Choices& found, const ChooseRequest& asked) {
  return std::span(found.meeting).first(std::min(found.meeting.size(), static_cast<std::size_t>(asked.show)));
}

// The axes that tell these apart, beyond the columns of the text.
std::vector<Field> further_fields(std::span<const Choice> choices) {
  static constexpr std::string_view kColumns[] = {
      "hardware", "nodes", "dp", "tp", "pp", "cp", "zero", "micro_batch_size", "recompute"};
  std::vector<ResultRow> rows(choices.size());
  std::vector<const ResultRow*> pointers;
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].trial = choices[i].entry->trial, pointers.push_back(&rows[i]);
  auto out = telling_apart(varying(rows), pointers);
  std::erase_if(out, [](const Field& field) {
    return std::ranges::find(kColumns, field.name()) != std::end(kColumns);
  });
  return out;
}

}  // namespace

double Choice::model_bytes() const {
  return 4 * static_cast<double>(shape::parameter_count(entry->trial.spec));
}

Choices choose(std::span<const PlanEntry> entries, const ChooseRequest& asked,
               const std::map<std::string, double>& usd_per_node_hour) {
  Choices out;
  // A budget alone asks for the fastest, all else for the cheapest.
  out.by_time = asked.usd && !asked.days;
  auto& options = out.meeting = choices_of(entries, asked.tokens, usd_per_node_hour);
  if (options.empty()) return out;
  const auto by_time = [](const Choice& each) {
    return std::tuple(each.hours, each.usd.value_or(kNoPrice), std::string_view(each.entry->id));
  };
  const auto by_price = [](const Choice& each) {
    return std::tuple(each.usd.value_or(kNoPrice), each.hours, std::string_view(each.entry->id));
  };
  out.fastest = std::ranges::min(options, {}, by_time);
  if (const Choice least = std::ranges::min(options, {}, by_price); least.usd) out.cheapest = least;
  if (asked.days)
    std::erase_if(options, [&](const Choice& each) { return each.hours > *asked.days * kHoursOfDay; });
  if (asked.usd)
    std::erase_if(options, [&](const Choice& each) { return !each.usd || *each.usd > *asked.usd; });
  out.by_time ? std::ranges::sort(options, {}, by_time) : std::ranges::sort(options, {}, by_price);
  return out;
}

std::string choices_text(const Choices& found, const ChooseRequest& asked) {
  if (found.meeting.empty()) return {};
  const auto shown = shown_of(found, asked);
  const auto further = further_fields(shown);
  std::string out = fmt::format(
      "hardware             nodes   dp  tp  pp  cp zero  mbs recompute   days        usd  tokens/s  "
      "model in fp32{}\n",
      further.empty() ? "" : "  setting");
  for (const Choice& o : shown) {
    const Trial& t = o.entry->trial;
    ResultRow row;
    row.trial = t;
    const std::string setting = setting_text(row, further);
    out += fmt::format("{:20} {:5} {:4} {:3} {:3} {:3} {:4} {:4} {:9} {:6.1f} {:>10} {:9.3g} {:9.1f} GiB{}\n",
                       t.hardware, t.nodes, t.dp, t.tp, t.pp, t.cp, t.zero, t.micro_batch_size,
                       to_string(t.recompute), o.days(), o.usd ? fmt::format("{:.0f}", *o.usd) : "-",
                       o.useful_tokens_per_s, o.model_bytes() / kGibibyte,
                       setting.empty() ? "" : "  " + setting);
  }
  return out;
}

std::string choices_summary(const Choices& found, const ChooseRequest& asked, const std::string& grid) {
  if (!found.fastest)
    return fmt::format("sweep: nothing of {} is predicted to fit; `sweep plan {}` says why\n", grid, grid);
  if (found.meeting.empty()) {
    const auto told = [](const char* which, const Choice& each) {
      return fmt::format("; the {} (predicted) takes {:.1f} days{}", which, each.days(),
                         each.usd ? fmt::format(" and {:.0f} USD", *each.usd) : "");
    };
    return fmt::format("sweep: no configuration finishes {:g} tokens{}{}{}{}\n", asked.tokens,
                       asked.days ? fmt::format(" in {:g} days", *asked.days) : "",
                       asked.usd ? fmt::format(" for {:.0f} USD", *asked.usd) : "",
                       asked.usd && found.cheapest ? told("cheapest", *found.cheapest) : "",
                       asked.days || !found.cheapest ? told("fastest", *found.fastest) : "");
  }
  return fmt::format(
      "{} predicted to fit and meet that; {} first. Predicted, not measured: run the first ones\n",
      counted(i64(found.meeting.size()), "configuration"), found.by_time ? "the fastest" : "the cheapest");
}

nlohmann::json choices_json(const Choices& found, const ChooseRequest& asked) {
  const auto choice = [](const Choice& o) {
    return nlohmann::json{{"trial", o.entry->id},
                          {"configuration", to_json(o.entry->trial)},
                          {"days", o.days()},
                          {"usd", or_null(o.usd)},
                          {"tokens_per_s", o.tokens_per_s},
                          {"useful_tokens_per_s", o.useful_tokens_per_s},
                          {"model_bytes", static_cast<i64>(o.model_bytes())}};
  };
  nlohmann::json shown = nlohmann::json::array();
  for (const Choice& o : shown_of(found, asked)) shown.push_back(choice(o));
  return {{"tokens", asked.tokens},
          {"ordered_by", found.by_time ? "days" : "usd"},
          {"meeting", found.meeting.size()},
          {"fastest", found.fastest ? choice(*found.fastest) : nlohmann::json(nullptr)},
          {"choices", shown}};
}

}  // namespace sweep::answers
