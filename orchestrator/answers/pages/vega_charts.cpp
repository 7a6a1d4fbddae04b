#include "orchestrator/answers/pages/vega_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "orchestrator/answers/format.h"
#include "orchestrator/answers/json_values.h"

namespace sweep::answers {
namespace {

using nlohmann::json;

// Okabe and Ito 2008: they differ for every kind of colour blindness. Grey stands for waiting, and ends the list.
constexpr std::array<std::string_view, 7> kColours = {"#0072b2", "#e69f00", "#d55e00", "#009e73",
                                                      "#c9ced4", "#cc79a7", "#56b4e9"};
constexpr const char* kFont = "system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif";
constexpr double kAboveBar = 16, kRow = 24, kLowRow = 14, kPlot = 170;
constexpr std::size_t kManyRows = 24;
constexpr std::size_t kBeside =
    34;  // columns of a label beside its bar; longer ones stand above, none is cut

std::string colour(std::size_t kind) {
  return std::string(kColours[kind % kColours.size()]);
}

json axis(const char* scale, const char* side, const std::string& title) {
  return {{"scale", scale},     {"orient", side},        {"title", safe_text(title)}, {"titleFont", kFont},
          {"labelFont", kFont}, {"titleFontSize", 12},   {"labelFontSize", 11},       {"labelOverlap", true},
          {"labelLimit", 260},  {"titleFontWeight", 500}};
}

// The parts that every chart has. The width is the page's (drawn.js).
json frame(const std::string& title, double height) {
  return {{"description", safe_text(title)},
          {"autosize", {{"type", "fit-x"}, {"contains", "padding"}, {"resize", true}}},
          {"padding", 5},
          {"background", "#ffffff"},
          {"width", 600},
          {"height", height}};
}

json field(const char* scale, const char* name) {
  return {{"scale", scale}, {"field", name}};
}

std::string legend(const std::vector<std::string>& names, const std::set<std::size_t>& used) {
  if (used.size() < 2) return "";
  std::string out = "<ul class=\"legend\">";
  for (const std::size_t i : used)
    out += fmt::format("<li><i style=\"background:{}\"></i>{}</li>", colour(i), escape_xml(names[i]));
  return out + "</ul>\n";
}

std::string html(const std::string& legend, const json& spec) {
  return fmt::format(
      "<figure class=\"drawn\">\n{}<div></div>\n<script type=\"application/json\">{}</script>\n</figure>\n",
      legend, inside_script(spec.dump(-1, ' ', false, json::error_handler_t::replace)));
}

// The bars of a chart of spans; below their labels, where these stand above.
json bars(bool above) {
  const json y = {{"scale", "y"}, {"field", "r"}, {"offset", above ? kAboveBar : 0}};
  const json height = {{"signal", fmt::format("bandwidth('y') - {}", above ? kAboveBar : 0)}};
  return {{"type", "rect"},
          {"from", {{"data", "spans"}}},
          {"encode",
           {{"update",
             {{"x", field("x", "a")},
              {"x2", field("x", "b")},
              {"y", y},
              {"height", height},
              {"fill", {{"field", "c"}}},
              {"stroke", {{"value", "#ffffff"}}},
              {"strokeWidth", {{"value", 0.5}}},
              {"tooltip", {{"field", "h"}}},
              {"description", {{"field", "h"}}}}}}}};
}

json labels_beside() {
  json out = axis("y", "left", "");
  out["domain"] = false, out["ticks"] = false, out["labelLimit"] = 0;
  out["encode"] = {{"labels", {{"update", {{"text", {{"signal", "data('rows')[datum.value].name"}}}}}}}};
  return out;
}

json labels_above() {
  return {{"type", "text"},
          {"from", {{"data", "rows"}}},
          {"encode",
           {{"update",
             {{"x", {{"value", 0}}},
              {"y", {{"scale", "y"}, {"field", "at"}, {"offset", kAboveBar - 4}}},
              {"text", {{"field", "name"}}},
              {"font", {{"value", kFont}}},
              {"fontSize", {{"value", 11}}},
              {"fill", {{"value", "#16202a"}}}}}}}};
}

}  // namespace

std::string figure(const SpanChart& chart) {
  json values = json::array(), rows = json::array(), places = json::array();
  std::set<std::size_t> used;
  double end = 0;
  for (const TimeSpan& span : chart.spans) {
    if (!(span.to > span.from)) continue;
    used.insert(span.kind), end = std::max(end, span.to);
    values.push_back({{"r", span.row},
                      {"a", span.from},
                      {"b", span.to},
                      {"c", colour(span.kind)},
                      {"h", safe_text(span.hover)}});
  }
  if (values.empty()) return "";
  for (std::size_t i = 0; i < chart.rows.size(); ++i)
    places.push_back(i), rows.push_back({{"at", i}, {"name", safe_text(chart.rows[i])}});
  const bool above = std::ranges::any_of(
      chart.rows, [](const std::string& name) { return display_width(safe_text(name)) > kBeside; });
  const double row = above ? kRow + kAboveBar : chart.rows.size() > kManyRows ? kLowRow : kRow;
  json spec = frame(chart.title, row * double(chart.rows.size()));
  spec["data"] = {{{"name", "rows"}, {"values", rows}}, {{"name", "spans"}, {"values", values}}};
  spec["scales"] = {
      {{"name", "x"}, {"type", "linear"}, {"domain", {0, end}}, {"range", "width"}},
      {{"name", "y"}, {"type", "band"}, {"domain", places}, {"range", "height"}, {"padding", 0.12}}};
  json along = axis("x", "bottom", chart.x);
  along["tickCount"] = {{"signal", "ceil(width / 90)"}}, along["labelFlush"] = 20;
  spec["axes"] = json::array({along});
  spec["marks"] = json::array({bars(above)});
  if (above)
    spec["marks"].push_back(labels_above());
  else
    spec["axes"].push_back(labels_beside());
  return html(legend(chart.kinds, used), spec);
}

std::string figure(const LineChart& chart) {
  json values = json::array();
  std::set<std::size_t> used;
  std::vector<std::string> names;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    names.push_back(chart.series[s].first);
    for (const LinePoint& point : chart.series[s].second) {
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
      used.insert(s);
      values.push_back({{"x", point.x}, {"y", point.y}, {"c", colour(s)}, {"h", safe_text(point.hover)}});
    }
  }
  if (values.size() < 2) return "";
  const auto domain = [](const char* name) { return json{{"data", "points"}, {"field", name}}; };
  json spec = frame(chart.title, kPlot);
  spec["data"] = json::array({{{"name", "points"}, {"values", values}}});
  spec["scales"] = {
      {{"name", "x"}, {"type", "linear"}, {"domain", domain("x")}, {"range", "width"}, {"zero", false}},
      {{"name", "y"},
       {"type", "linear"},
       {"domain", domain("y")},
       {"range", "height"},
       {"zero", true},
       {"nice", true}}};
  json along = axis("x", "bottom", chart.x), up = axis("y", "left", chart.y);
  if (chart.counts) along["tickMinStep"] = 1, along["format"] = "d";
  along["tickCount"] = {{"signal", "ceil(width / 90)"}}, along["labelFlush"] = 20, up["tickCount"] = 4,
  up["grid"] = true;
  spec["axes"] = {along, up};
  const json at = {{"x", field("x", "x")}, {"y", field("y", "y")}};
  json line = at, dot = at;
  line["stroke"] = {{"field", "c"}}, line["strokeWidth"] = {{"value", 2}};
  dot["fill"] = {{"field", "c"}}, dot["size"] = {{"value", 24}}, dot["tooltip"] = {{"field", "h"}};
  dot["description"] = {{"field", "h"}};
  spec["marks"] =
      json::array({{{"type", "group"},
                    {"from", {{"facet", {{"name", "one"}, {"data", "points"}, {"groupby", "c"}}}}},
                    {"marks",
                     {{{"type", "line"}, {"from", {{"data", "one"}}}, {"encode", {{"update", line}}}},
                      {{"type", "symbol"}, {"from", {{"data", "one"}}}, {"encode", {{"update", dot}}}}}}}});
  return html(legend(names, used), spec);
}

}  // namespace sweep::answers
