#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/charts/palette.h"
#include "orchestrator/answers/json_values.h"
#include "orchestrator/answers/pages/page_frame.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/statistics/importance.h"
#include "orchestrator/answers/statistics/prices.h"
#include "orchestrator/answers/statistics/statistics.h"
#include "schema/ranking.h"

namespace sweep::answers {
namespace {

constexpr std::size_t kReasonColumns = 240;       // longer reasons are cut: `sweep explain` has the whole
constexpr std::size_t kDistinctReasons = 20'000;  // further ones are left out of the page
constexpr std::string_view kMetrics[] = {"tokens_per_s_gpu",
                                         "mfu",
                                         "hfu",
                                         "step_ms",
                                         "tflops_gpu",
                                         "cost_per_mt",
                                         "mt_per_hour",
                                         "useful_tokens_per_s",
                                         "useful_tokens_per_s_gpu",
                                         "useful_mfu",
                                         "useful_cost_per_mt",
                                         "util_mean",
                                         "peak_allocated_bytes",
                                         "peak_reserved_bytes",
                                         "predicted_bytes",
                                         "mfu_reported",
                                         "memory_reported_bytes"};

// JSON text safe inside a script element: no '<', '>' or '&' survives in a string, so no `</script>` and no
// `<!--`.
std::string json_string(std::string_view text) {
  const auto harmless = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_' || c == '-';
  };
  if (std::all_of(text.begin(), text.end(), harmless))
    return fmt::format("\"{}\"", text);  // ids: most of a page
  return inside_script(nlohmann::json(safe_text(text)).dump());
}

// The words of each CellOutcome, and the state of a cell whose configurations all ended so.
constexpr std::string_view kOutcomeWords[kCellOutcomes] = {"ok", "OOM", "pruned", "failed", "not run yet"};
constexpr std::string_view kOutcomeStates[kCellOutcomes] = {"", "oom", "pruned", "failed", "pending"};
constexpr bool kSpreads[] = {false, true};

// One value in a cell: "TP8", "recompute=full"; empty: it was not resolved.
std::string setting_of(const Field& field, const Value& value) {
  if (value.index() == 0) return "";
  const auto brief = short_name(field.name());
  if (brief != field.name()) return std::string(brief) + show(value);
  if (field.name() == "model" || field.name() == "hardware") return show(value);
  return safe_text(field.name()) + "=" + show(value) + unit_of_label(field);
}

class Page {
 public:
  Page(const Heatmap& map, std::span<const ResultRow> rows) : map_(map), rows_(rows) {
    out_.reserve(rows.size() * 80 + 4096);
  }

  std::string data() {
    put("{{\"n\":{},\"rows\":{},\"cols\":{},\"value\":{},\"objective\":{},\"log_ratio\":{},\"light_text_"
        "below\":{:.6f},"
        "\"unresolved\":{},\"most_cells\":{},\"most_others\":{},",
        rows_.size(), json_string(map_.rows.name()), json_string(map_.cols.name()),
        json_string(map_.value.name()), json_string(map_.objective.name()), kLogRatio, light_text_below(),
        json_string(kNotResolved), kMostCells, kMostOthers);
    list("palette", kViridis, [&](std::string_view colour) { out_ += json_string(colour); });
    list("states", kStateWords, [&](const StateWords& of) {
      put("[{},{},{}]", json_string(of.key), json_string(of.word), json_string(of.meaning));
    });
    list("prices", price_sentences(rows_, today()),
         [&](const std::string& price) { out_ += json_string(price); });
    list("not_mixed", kKeptApart, [&](std::string_view key) { out_ += json_string(key); });
    list("apart", map_.apart, [&](const std::string& key) { out_ += json_string(key); });
    list("kept", map_.slices,
         [&](const Slice& slice) { put("[{},{}]", json_string(slice.axis.name()), slice.kept); });
    list("important", importance(rows_, map_.objective, map_.varying, map_.apart),
         [&](const AxisImportance& one) { out_ += json_string(one.axis.name()); });
    axes();
    metrics();
    layouts();
    cell_outcomes();
    reasons();
    certainty();
    list("ids", rows_, [&](const ResultRow& row) { out_ += json_string(row.trial_id); });
    out_.back() = '}';  // the comma behind the last list
    return std::move(out_);
  }

 private:
  template <class... T>
  void put(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<T>(values)...);
  }

  // Places are most of a page: no format is read for each.
  void put_place(std::size_t n) {
    const fmt::format_int digits(n);
    out_.append(digits.data(), digits.size());
  }

  template <class Range, class F>
  void list(std::string_view key, const Range& range, F&& each) {
    put("\"{}\":[", key);
    bool first = true;
    for (const auto& item : range) {
      if (!first) out_ += ',';
      first = false;
      each(item);
    }
    out_ += "],";
  }

  // Every axis that varies, and rows and cols in any case: distinct values ascending, and each row's place
  // among them.
  void axes() {
    std::vector<Field> shown = map_.varying;
    for (const Field* field : {&map_.rows, &map_.cols}) {
      if (std::none_of(shown.begin(), shown.end(), [&](const Field& f) { return f.name() == field->name(); }))
        shown.push_back(*field);
    }
    list("axes", shown, [&](const Field& field) {
      const Indexed index = index_of(rows_, field);
      const bool numbers = std::none_of(index.keys.begin(), index.keys.end(), [](const Value& v) {
        return std::holds_alternative<std::string>(v);
      });
      const std::string unit = field.unit() == "bytes" ? "" : std::string(field.unit());
      put("{{\"key\":{},\"name\":{},\"title\":{},\"unit\":{},\"number\":{},", json_string(field.name()),
          json_string(map_.names.of(field)),
          json_string(map_.names.with_unit(field, {1, std::string(field.unit()), false})), json_string(unit),
          numbers);
      std::vector<std::string> labels;
      for (const Value& value : index.keys)
        labels.push_back(value.index() == 0 ? std::string(kNotResolved) : show(value));
      const auto text = [&](const std::string& label) { out_ += json_string(label); };
      list("values", labels, text);
      list("settings", index.keys,
           [&](const Value& value) { out_ += json_string(setting_of(field, value)); });
      for (const auto& [key, columns] :
           {std::pair("row_labels", kRowLabel), std::pair("col_labels", kColLabel)})
        if (const auto brief = shortened(labels, columns); brief != labels) list(key, brief, text);
      list("of", index.of, [&](std::size_t place) { put_place(place); });
      out_.back() = '}';
    });
  }

  // The rows that were stopped early, and factors from a value to the ends of its interval: of metrics that grow with
  // the step time, then of those that fall with it. No spreads: no row has an interval.
  void certainty() {
    std::vector<std::size_t> stopped;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].metrics.steps_saved) stopped.push_back(i);
    list("stopped", stopped, [&](std::size_t i) { put_place(i); });
    list("spreads", std::span(kSpreads).first(has_intervals_ ? std::size(kSpreads) : 0), [&](bool inverse) {
      for (const bool high : {false, true}) {
        put("{}\"{}\":", high ? "," : "{", high ? "high" : "low");
        joined([&](const ResultRow& row) -> std::string {
          const auto interval = interval_of(row, "step_ms");
          if (!interval) return "";
          const double ms = *row.metrics.step_ms;
          return fmt::format("{:.9g}", inverse ? ms / (high ? interval->low : interval->high)
                                               : (high ? interval->high : interval->low) / ms);
        });
      }
      out_ += '}';
    });
  }

  // A list of texts without commas, as one string.
  template <class F>
  void joined(F&& text_of) {
    out_ += '"';
    for (const ResultRow& row : rows_) {
      if (&row != rows_.data()) out_ += ',';
      out_ += text_of(row);
    }
    out_ += '"';
  }

  // The place of each row that ended ok and has a value, the best first; the others have none.
  std::string order_of(const Field& field, Better better) const {
    std::vector<std::size_t> order;
    std::vector<double> values(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const auto value = number(field.of(rows_[i]));
      if (!value || cell_outcome_of(rows_[i]) != CellOutcome::kOk) continue;
      values[i] = *value;
      order.push_back(i);
    }
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return goes_before(better, rows_[a], values[a], rows_[b], values[b]);
    });
    std::vector<std::optional<std::size_t>> place(rows_.size());
    for (std::size_t at = 0; at < order.size(); ++at) place[order[at]] = at;
    std::string out;
    for (std::size_t i = 0; i < place.size(); ++i) {
      if (i > 0) out += ',';
      if (place[i]) out += std::to_string(*place[i]);
    }
    return out;
  }

  void metrics() {
    std::vector<Field> shown = {map_.value};
    if (map_.objective.name() != map_.value.name()) shown.push_back(map_.objective);
    for (const std::string_view key : kMetrics) {
      const Field field(*find_column(key));
      const bool there =
          std::any_of(shown.begin(), shown.end(), [&](const Field& f) { return f.name() == key; });
      const bool measured = std::any_of(rows_.begin(), rows_.end(),
                                        [&](const ResultRow& r) { return field.of(r).index() != 0; });
      if (!there && measured) shown.push_back(field);
    }
    list("metrics", shown, [&](const Field& field) { metric(field); });
  }

  void metric(const Field& field) {
    const Better better = find_column(field.name())->better;
    double largest = 0;
    for (const ResultRow& row : rows_)
      largest = std::max(largest, std::abs(number(field.of(row)).value_or(0)));
    const Scale scale = scale_for(field.unit(), largest);
    const FollowsStep follows = follows_step(field.name());
    const int spread =
        !has_intervals_ || follows == FollowsStep::kNot ? -1 : int(follows == FollowsStep::kInversely);
    put("{{\"key\":{},\"name\":{},\"title\":{},\"unit\":{},\"lower\":{},\"ranks\":{},\"spread\":{},\"of\":",
        json_string(field.name()), json_string(map_.names.of(field)),
        json_string(map_.names.with_unit(field, scale)), json_string(scale.unit),
        lower_is_better(field.name()), better != Better::kNone, spread);
    joined([&](const ResultRow& row) {
      const Value value = field.of(row);
      return number(value) ? show(value) : "";
    });
    out_ += ",\"text\":";
    joined([&](const ResultRow& row) {
      const Value value = field.of(row);
      return value.index() == 0 ? "" : show(value, scale);
    });
    put(",\"rank\":\"{}\"}}", better == Better::kNone ? "" : order_of(field, better));
  }

  // Lists what may be in a cell, line by line; the page leaves out rows, columns and what its cells agree on.
  void layouts() {
    list("layout", possible_cell_lines(map_), [&](const std::vector<Field>& line) {
      out_ += '[';
      for (std::size_t i = 0; i < line.size(); ++i)
        put("{}{}", i > 0 ? "," : "", json_string(line[i].name()));
      out_ += ']';
    });
  }

  void cell_outcomes() {
    out_ += "\"cell_outcome\":\"";
    for (const ResultRow& row : rows_) out_ += static_cast<char>('0' + int(cell_outcome_of(row)));
    out_ += "\",";
    list("outcome_words", kOutcomeWords, [&](std::string_view word) { out_ += json_string(word); });
    list("outcome_states", kOutcomeStates, [&](std::string_view key) { out_ += json_string(key); });
    std::vector<std::string> names;
    for (int i = 0; i <= int(Outcome::kFailedUnknown); ++i) names.emplace_back(to_string(Outcome(i)));
    names.emplace_back("not run yet");
    list("outcomes", names, [&](const std::string& name) { out_ += json_string(name); });
    const auto pending = names.size() - 1;
    list("outcome", rows_, [&](const ResultRow& row) {
      put_place(row.state == State::kFinished ? static_cast<std::size_t>(row.outcome) : pending);
    });
  }

  void reasons() {
    std::unordered_map<std::string, std::size_t> seen;
    std::vector<std::string> texts = {""};
    std::vector<std::size_t> of;
    of.reserve(rows_.size());
    for (const ResultRow& row : rows_) {
      if (row.reason.empty() || row.state != State::kFinished) {
        of.push_back(0);
        continue;
      }
      const std::string text = fit(safe_text(row.reason), kReasonColumns);
      const bool room = texts.size() < kDistinctReasons;
      const auto it = room ? seen.try_emplace(text, texts.size()).first : seen.find(text);
      of.push_back(it == seen.end() ? 0 : it->second);
      if (it != seen.end() && it->second == texts.size()) texts.push_back(text);
    }
    list("reasons", texts, [&](const std::string& text) { out_ += json_string(text); });
    list("reason", of, [&](std::size_t i) { put_place(i); });
  }

  const Heatmap& map_;
  std::span<const ResultRow> rows_;
  const bool has_intervals_ = std::ranges::any_of(
      rows_, [](const ResultRow& row) { return interval_of(row, "step_ms").has_value(); });
  std::string out_;
};

std::string whole_page(const Heatmap& map, std::span<const ResultRow> rows, bool live) {
  const std::string title = title_of(map);
  const Script program = live ? heatmap_live_script() : heatmap_script();
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  // The page may not load or send anything and runs its own two scripts alone, whatever a result says; a live
  // one asks its own server alone.
  out += fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src {} {}; base-uri 'none'; form-action 'none'{}\">\n",
      csp_hash(vega_script()), csp_hash(program), live ? "; connect-src 'self'" : "");
  out += fmt::format("<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n",
                     escape_xml(title), heatmap_css(), escape_xml(title));
  out += rehearsed_banner(map.rehearsed);
  if (!map.question.empty()) out += fmt::format("<p class=\"question\">{}</p>\n", escape_xml(map.question));
  out +=
      "<div id=\"summary\"></div>\n</header>\n<div id=\"controls\"></div>\n<details "
      "id=\"filters\"></details>\n<main>\n"
      "<div id=\"chart\" tabindex=\"0\"></div>\n<div id=\"keys\"></div>\n"
      "<section id=\"list\" class=\"listing\" hidden></section>\n<details id=\"parallel\"></details>\n"
      "<details id=\"all\"></details>\n</main>\n<div id=\"tip\" role=\"tooltip\" "
      "hidden></div>\n<noscript>\n";
  out += to_svg(map);
  out += "</noscript>\n<script type=\"application/json\" id=\"data\">";
  out += Page(map, rows).data();
  out += fmt::format("</script>\n<script>{}</script>\n<script>{}</script>\n</body>\n</html>\n",
                     vega_script().text, program.text);
  return out;
}

}  // namespace

std::string to_html(const Heatmap& map, std::span<const ResultRow> rows) {
  return whole_page(map, rows, false);
}

std::string to_live_html(const Heatmap& map, std::span<const ResultRow> rows) {
  return whole_page(map, rows, true);
}

std::string page_data(const Heatmap& map, std::span<const ResultRow> rows) {
  return Page(map, rows).data();
}

}  // namespace sweep::answers
