#include <fmt/format.h>

#include "orchestrator/answers/charts/bandwidth.h"
#include "orchestrator/answers/format.h"

namespace sweep::answers {
namespace {

std::string per_second(double rate, const char* unit) {
  return rate > 1e300 ? "-" : significant(rate * 1e-9) + " " + unit;
}

std::string bandwidth_table(const shape::HardwareProfile& p) {
  std::string out =
      fmt::format("{:<16} {:<8} {:>6} {:>6} {:>10} {:>12} {:>12} {:>12}  {}\n", "collective", "backend",
                  "ranks", "nodes", "size", "time us", "alg GB/s", "bus GB/s", "result");
  for (const auto& r : p.collectives)
    out += fmt::format("{:<16} {:<8} {:>6} {:>6} {:>10} {:>12} {:>12} {:>12}  {}\n", safe_text(r.kind),
                       safe_text(r.backend), r.ranks, r.nodes, size_text(r.bytes),
                       significant(r.seconds * 1e6), significant(shape::algorithm_bandwidth(r) / 1e9),
                       significant(shape::bus_bandwidth(r) / 1e9),
                       r.wrong == 0 ? "right" : fmt::format("{} elements WRONG", r.wrong));
  return out;
}

}  // namespace

std::string machine_text(const shape::HardwareProfile& p) {
  if (p.matmul.empty()) return "";
  std::string out =
      fmt::format("{:<10} {:>7} {:>7} {:>7} {:>12} {:>12}\n", "product", "m", "n", "k", "time us", "GFLOP/s");
  for (const auto& r : p.matmul)
    out += fmt::format("{:<10} {:>7} {:>7} {:>7} {:>12} {:>12}\n", safe_text(r.precision), r.m, r.n, r.k,
                       significant(r.seconds * 1e6),
                       significant(2e-9 * static_cast<double>(r.m) * static_cast<double>(r.n) *
                                   static_cast<double>(r.k) / r.seconds));
  out += '\n';
  for (const auto& r : p.copies)
    out += fmt::format("copy of {:>8}: {:>8} GB/s read and written\n", size_text(r.bytes / 2),
                       significant(static_cast<double>(r.bytes) / r.seconds * 1e-9));
  return out + fmt::format("host time of a small operation: {} us\n\n", significant(p.launch_s * 1e6));
}

std::string network_text(const shape::HardwareProfile& p) {
  std::string out = p.collectives.empty() ? "" : bandwidth_table(p) + "\n";
  if (!p.products.empty())
    out += fmt::format("{:<10} {:>12} {:>18} {:>14} {:>8}\n", "product", "overhead us", "rate", "memory",
                       "within");
  for (const auto& c : p.products)
    out += fmt::format("{:<10} {:>12} {:>18} {:>14} {:>6.0f} %\n", safe_text(c.precision),
                       significant(c.overhead_s * 1e6), per_second(c.flops, "GFLOP/s"),
                       per_second(c.bandwidth, "GB/s"), 100 * c.error);
  if (!p.links.empty())
    out += fmt::format("\n{:<16} {:<8} {:>6} {:>6} {:>12} {:>14} {:>8}\n", "collective", "backend", "ranks",
                       "nodes", "latency us", "bus bandwidth", "within");
  for (const auto& c : p.links)
    out += fmt::format("{:<16} {:<8} {:>6} {:>6} {:>12} {:>14} {:>6.0f} %\n", safe_text(c.kind),
                       safe_text(c.backend), c.ranks, c.nodes, significant(c.latency_s * 1e6),
                       per_second(c.bandwidth, "GB/s"), 100 * c.error);
  return out;
}

}  // namespace sweep::answers
