// Parts of the report page, private to answers/: each gives the inside of one section as HTML; empty: there is nothing to
// show, and the page has no such section.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orchestrator/answers/charts/chart.h"
#include "orchestrator/answers/names.h"
#include "orchestrator/answers/pages/report_page.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/answers/statistics/pareto.h"

namespace sweep::answers::parts {

std::string answer(const ReportInput&, std::span<const BestOfGroup>, const BestOptions&);
std::string cost(const ReportInput&, std::span<const BestOfGroup>, const BestOptions&);
std::string landscape(const ReportInput&);
std::string memory_and_speed(const ReportInput&);
std::string scaling(const ReportInput&);
std::string batches(const ReportInput&);
std::string time_split(const ReportInput&);
std::string stages(const ReportInput&);
std::string several_kinds(const ReportInput&);
std::string importance_bars(const ReportInput&);
std::string time_and_cost(const ReportInput&);
std::string what_fits(const ReportInput&);
std::string failures(const ReportInput&);
std::string predictions(const ReportInput&);
Expected<std::string> beside(const ReportInput&);
std::string environment(const ReportInput&);
std::string reproduce(const ReportInput&);

// How much the best is worth: over the median of its group, and over what one would try first.
struct Gain {
  std::optional<double> over_median, over_guess;  // factors
  const ResultRow* guess = nullptr;               // the first guess; null: the group has no other that ran
  bool guess_is_best = false, guess_ran_out = false;
};
Gain gain_of(const ReportInput&, const BestOfGroup&, const BestOptions&);
std::string gain(const ReportInput&, const BestOfGroup&, const BestOptions&, std::span<const Field> differ);
// Whether a row belongs to a group of `best`.
bool belongs(const ResultRow&, const BestOfGroup&, const BestOptions&);
std::string heading_of(const BestOfGroup&, const BestOptions&);  // "8B, sequence length 4096"

// The figures that people ask for first, as a list; those that were measured.
std::string facts_of(const ResultRow&, const Names&);
// The rows that ended ok and count, by the group in which they compare: its heading.
std::map<std::string, std::vector<const ResultRow*>> comparable_rows(
    const ReportInput&, const std::function<bool(const ResultRow&)>& counts);
// Rows as pale points at their x and y, both above 0: at most one point for each place on the paper, so that a hundred
// thousand rows stay a small picture.
ChartSeries cloud(const std::vector<const ResultRow*>&, const Figure& x, const Figure& y,
                  const std::function<ChartPoint(const ResultRow&)>& point);

// The varying values, as "TP2 ZeRO1 recompute=full"; the model if nothing varies.
std::string name_of(const ResultRow&, std::span<const Field> varying);
std::string paragraph(std::string_view text);  // escaped
std::string block(std::string_view text);      // escaped, several lines, selected whole by a click
// Heads by their names for people. Axes that are the same in every row are said in a sentence above instead.
// `links`: an address for the first cell of each row; none: it is text.
std::string html_table(Table, const Names&, std::span<const std::string> links = {});

}  // namespace sweep::answers::parts
