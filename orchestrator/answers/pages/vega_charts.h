// Charts that Vega draws on a page: each is a specification as JSON inside of a figure, which drawn.js hands to Vega as it
// is. Private to answers/. Any text may be given: it is made safe here.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace sweep::answers {

// A stretch of time of one row.
struct TimeSpan {
  std::size_t row = 0, kind = 0;
  double from = 0, to = 0;
  std::string hover;
};
// Bars along one axis of time: a row of spans for each rank, trial, ... The colours belong to the kinds.
struct SpanChart {
  std::string title, x;  // a text for those who cannot see the chart; the x axis with its unit
  std::vector<std::string> rows, kinds;
  std::vector<TimeSpan> spans = {};
};

struct LinePoint {
  double x = 0, y = 0;
  std::string hover;
};
struct LineChart {
  std::string title, x, y;
  std::vector<std::pair<std::string, std::vector<LinePoint>>> series = {};
  bool counts = false;  // x counts something: ticks are whole numbers
};

// The figure; empty: there is nothing to draw.
std::string figure(const SpanChart&);
std::string figure(const LineChart&);

}  // namespace sweep::answers
