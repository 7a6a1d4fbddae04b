#include "bench_kernels/shape/hardware_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/expected.h"
#include "bench_kernels/shape/nonnegative_fit.h"
#include "bench_kernels/shape/step_sizes.h"
#include "schema/codec.h"
#include "schema/frame.h"

namespace sweep::shape {
namespace {

using Json = nlohmann::json;

constexpr double kNone = std::numeric_limits<double>::infinity();

double inverse(double x) {
  return x > 0 ? 1 / x : kNone;
}

double element_of(std::string_view precision) {
  return precision == "fp32" || precision == "tf32" ? 4 : 2;
}

double bytes_of(double m, double n, double k, double element) {
  return element * (m * k + k * n + m * n);
}

// The share within which nine of ten rows lie.
double ninth_of_ten(std::vector<double> errors) {
  if (errors.empty()) return 0;
  const auto at = errors.begin() + static_cast<std::ptrdiff_t>((errors.size() - 1) * 9 / 10);
  std::nth_element(errors.begin(), at, errors.end());
  return *at;
}

// A product that reads and writes no faster than `copy_bandwidth` would be measured wrongly: then the
// operations and the overhead explain its time alone.
MatmulCost fit_products(const std::string& precision, const std::vector<const MatmulTiming*>& rows,
                        double copy_bandwidth) {
  MatmulCost cost;
  cost.precision = precision, cost.element = element_of(precision);
  NonnegativeFit<3> whole;
  NonnegativeFit<2> without_memory;
  for (const auto* r : rows) {
    const double m = real(r->m), n = real(r->n), k = real(r->k);
    whole.add({1, 2 * m * n * k, bytes_of(m, n, k, cost.element)}, r->seconds);
    without_memory.add({1, 2 * m * n * k}, r->seconds);
  }
  auto x = whole.solve();
  if (inverse(x[2]) < copy_bandwidth) {
    const auto fewer = without_memory.solve();
    x = {fewer[0], fewer[1], 0};
  }
  cost.overhead_s = x[0], cost.flops = inverse(x[1]), cost.bandwidth = inverse(x[2]);
  std::vector<double> errors;
  for (const auto* r : rows)
    errors.push_back(std::abs(cost.seconds(real(r->m), real(r->n), real(r->k)) / r->seconds - 1));
  cost.error = ninth_of_ten(std::move(errors));
  return cost;
}

LinkCost fit_link(const std::vector<const CollectiveRow*>& rows) {
  const CollectiveRow& first = *rows.front();
  LinkCost cost{first.kind, first.backend, first.ranks, first.nodes, 0, 0, 0};
  NonnegativeFit<2> fit;
  for (const auto* r : rows) fit.add({1, real(r->bytes) * bus_factor(r->kind, r->ranks)}, r->seconds);
  const auto x = fit.solve();
  cost.latency_s = x[0], cost.bandwidth = inverse(x[1]);
  std::vector<double> errors;
  for (const auto* r : rows) errors.push_back(std::abs(cost.seconds(real(r->bytes)) / r->seconds - 1));
  cost.error = ninth_of_ten(std::move(errors));
  return cost;
}

Json to_json(const CollectiveRow& r) {
  return {{"kind", r.kind},   {"backend", r.backend}, {"ranks", r.ranks}, {"nodes", r.nodes},
          {"bytes", r.bytes}, {"seconds", r.seconds}, {"wrong", r.wrong}};
}

Expected<void> read_collectives(const Json& whole, std::vector<CollectiveRow>& out) {
  if (!whole.contains("collectives") || !whole["collectives"].is_array()) return {};
  for (const Json& j : whole["collectives"]) {
    CollectiveRow r{text_of(j, "kind"),     text_of(j, "backend"),  integer_of(j, "ranks"),
                    integer_of(j, "nodes"), integer_of(j, "bytes"), number_of(j, "seconds"),
                    integer_of(j, "wrong")};
    if (r.ranks < 2 || r.nodes < 1 || r.bytes < 1 || !std::isfinite(r.seconds) || r.seconds <= 0)
      return fail(ErrorKind::kInvalidValue, "collectives",
                  "collectives holds a measurement that cannot be: " + dump(j));
    out.push_back(std::move(r));
  }
  return {};
}

}  // namespace

double algorithm_bandwidth(const CollectiveRow& r) {
  return real(r.bytes) / r.seconds;
}

double bus_factor(std::string_view kind, i64 ranks) {
  const double n = real(ranks);
  if (kind == "all_reduce") return 2 * (n - 1) / n;
  return kind == "send" ? 1 : (n - 1) / n;
}

double bus_bandwidth(const CollectiveRow& r) {
  return algorithm_bandwidth(r) * bus_factor(r.kind, r.ranks);
}

double MatmulCost::seconds(double m, double n, double k) const {
  return overhead_s + 2 * m * n * k / flops + bytes_of(m, n, k, element) / bandwidth;
}

double LinkCost::seconds(double bytes) const {
  return latency_s + bytes * bus_factor(kind, ranks) / bandwidth;
}

void HardwareProfile::fit() {
  copy_bandwidth = 0;
  const auto largest = std::max_element(copies.begin(), copies.end(),
                                        [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  if (largest != copies.end()) copy_bandwidth = real(largest->bytes) / largest->seconds;
  std::map<std::string, std::vector<const MatmulTiming*>> by_precision;
  for (const auto& r : matmul) by_precision[r.precision].push_back(&r);
  products.clear();
  for (const auto& [precision, rows] : by_precision)
    products.push_back(fit_products(precision, rows, copy_bandwidth));
  std::map<std::tuple<std::string, std::string, i64, i64>, std::vector<const CollectiveRow*>> by_group;
  for (const auto& r : collectives) by_group[{r.kind, r.backend, r.nodes, r.ranks}].push_back(&r);
  links.clear();
  for (const auto& [group, rows] : by_group) links.push_back(fit_link(rows));
}

const MatmulCost* HardwareProfile::product(std::string_view precision) const {
  const MatmulCost* same_width = nullptr;
  for (const MatmulCost& cost : products) {
    if (precision.substr(0, precision.find('_')) == cost.precision) return &cost;
    if (element_of(cost.precision) == element_of(precision)) same_width = &cost;
  }
  if (same_width != nullptr) return same_width;
  return products.empty() ? nullptr : &products.front();
}

const LinkCost* HardwareProfile::link(std::string_view kind, std::string_view backend, double ranks,
                                      double nodes) const {
  const LinkCost* best = nullptr;
  double least = kNone;
  for (const LinkCost& cost : links) {
    if (cost.kind != kind || cost.backend != backend) continue;
    const double by_nodes = 100 * std::abs(std::log(real(cost.nodes) / nodes));
    if (by_nodes >= least) continue;
    const double away = by_nodes + std::abs(std::log(real(cost.ranks) / ranks));
    if (away < least) best = &cost, least = away;
  }
  return best;
}

std::string to_json(const HardwareProfile& p) {
  Json out = to_json(CalibrationFindings{p.matmul, p.copies, p.launch_s, {}, p.kernels});
  out["name"] = p.name, out["hardware"] = p.hardware, out["hosts"] = p.hosts;
  out["build"] = p.build, out["date"] = p.date, out["threads"] = p.threads;
  out["collectives"] = Json::array();
  if (!out.contains("kernels")) out["kernels"] = Json::array();
  for (const auto& r : p.collectives) out["collectives"].push_back(to_json(r));
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Expected<HardwareProfile> hardware_profile_from_json(std::string_view text) {
  SWEEP_GET(auto whole, parse_json(text));
  if (!whole.is_object()) return fail(ErrorKind::kInvalidValue, "", "it is no JSON object");
  HardwareProfile p;
  SWEEP_TRY(read_collectives(whole, p.collectives));
  whole["collectives"] = Json::array();
  SWEEP_GET(auto measured, from_json<CalibrationFindings>(whole));
  SWEEP_TRY(check(measured));
  p.matmul = std::move(measured.matmul), p.copies = std::move(measured.copies),
  p.launch_s = measured.launch_s, p.kernels = std::move(measured.kernels);
  p.name = text_of(whole, "name"), p.hardware = text_of(whole, "hardware"), p.hosts = text_of(whole, "hosts");
  p.build = text_of(whole, "build"), p.date = text_of(whole, "date");
  p.threads = std::max<i64>(1, integer_of(whole, "threads"));
  if (p.name.empty() || p.hardware.empty())
    return fail(ErrorKind::kInvalidValue, "name",
                "it has no name, or names no hardware: it is no hardware profile");
  p.fit();
  return p;
}

}  // namespace sweep::shape
