#include "orchestrator/answers/statistics/prices.h"

#include <fmt/format.h>

#include <chrono>
#include <set>

#include "bench_kernels/shape/catalogue.h"
#include "schema/columns.h"

namespace sweep::answers {

std::string today() {
  using namespace std::chrono;
  return utc_time(duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count()).substr(0, 10);
}

std::string price_sentence(const std::string& hardware, double usd_per_node_hour, std::string_view today) {
  const auto price = shape::published_price(hardware, usd_per_node_hour);
  if (!price)
    return fmt::format("{}: {:.2f} USD per node and hour (the site's own price)", hardware,
                       usd_per_node_hour);
  std::string out = fmt::format("{}: {:.2f} USD per node and hour ({}, {})", hardware, usd_per_node_hour,
                                price->source, price->date);
  const auto now = shape::find_hardware(hardware);
  if (now->price->usd_per_node_hour != usd_per_node_hour)
    out += fmt::format("; WARNING: superseded by {:.2f} USD ({})", now->price->usd_per_node_hour,
                       now->price->date);
  else if (shape::older_than_a_year(*price, today))
    out += "; WARNING: more than a year old, set your own under `prices` in the site file";
  return out;
}

std::vector<std::string> price_sentences(std::span<const ResultRow* const> rows, std::string_view today) {
  std::set<std::pair<std::string, double>> used;
  for (const ResultRow* row : rows) {
    if (row->metrics.usd_per_node_hour && row->metrics.cost_per_mt)
      used.emplace(row->trial.hardware, *row->metrics.usd_per_node_hour);
  }
  std::vector<std::string> out;
  for (const auto& [hardware, usd] : used) out.push_back(price_sentence(hardware, usd, today));
  return out;
}

std::vector<std::string> price_sentences(std::span<const ResultRow> rows, std::string_view today) {
  std::vector<const ResultRow*> pointers;
  for (const ResultRow& row : rows) pointers.push_back(&row);
  return price_sentences(pointers, today);
}

}  // namespace sweep::answers
