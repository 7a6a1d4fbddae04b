#include "worker/agent/evidence/load_curve.h"

#include <algorithm>
#include <cmath>

namespace sweep::agent {
namespace {

double rounded(double value, double to) {
  return std::round(value * to) / to;
}

// Values of all points, NaN where one has none; empty: none has.
template <class Points, class Get>
std::vector<double> column(const Points& points, Get&& get) {
  std::vector<double> out;
  for (const auto& point : points) out.push_back(get(point));
  if (std::ranges::all_of(out, [](double value) { return std::isnan(value); })) out.clear();
  return out;
}

}  // namespace

void LoadCurve::Point::add(const Point& other) {
  until_s = other.until_s, looks += other.looks;
  util.add(other.util), power_w.add(other.power_w);
  if (other.memory_bytes) memory_bytes = std::max(memory_bytes.value_or(0), *other.memory_bytes);
}

void LoadCurve::add(const LoadLook& look) {
  const auto mean = [](const std::optional<double>& value) { return value ? Mean{*value, 1} : Mean{}; };
  const Point now{look.at_s, 1, mean(look.util), mean(look.power_w), look.memory_bytes};
  if (!points_.empty() && points_.back().looks < looks_a_point_) return points_.back().add(now);
  if (points_.size() == kMostPoints) {
    for (std::size_t i = 0; i < kMostPoints / 2; ++i) {
      Point both = points_[2 * i];
      both.add(points_[2 * i + 1]);
      points_[i] = both;
    }
    points_.resize(kMostPoints / 2);
    looks_a_point_ *= 2;
  }
  points_.push_back(now);
}

NodeLoad LoadCurve::load() const {
  const auto mean = [](const Mean& of) {
    return of.count > 0 ? rounded(of.sum / of.count, 10) : std::nan("");
  };
  NodeLoad out;
  for (const Point& point : points_) out.at_s.push_back(rounded(point.until_s, 100));
  out.util = column(points_, [&](const Point& point) { return mean(point.util); });
  out.power_w = column(points_, [&](const Point& point) { return mean(point.power_w); });
  out.memory_bytes =
      column(points_, [](const Point& point) { return point.memory_bytes.value_or(std::nan("")); });
  return out;
}

}  // namespace sweep::agent
