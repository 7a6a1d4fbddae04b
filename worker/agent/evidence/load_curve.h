// LoadCurve: the load of a node's part of an attempt over its time, in a bounded number of points however long it takes.
// It owns the points and asks nobody.
#pragma once
#include <optional>
#include <vector>

#include "schema/records.h"

namespace sweep::agent {

// One look at the load; absent: nothing tells it.
struct LoadLook {
  double at_s = 0;  // since the attempt began
  std::optional<double> util, memory_bytes, power_w;
};

class LoadCurve {
 public:
  // When there would be more points, neighbours become one.
  static constexpr std::size_t kMostPoints = 64;

  void add(const LoadLook&);
  // The curve so far, without the host's name.
  NodeLoad load() const;

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
    void add(const Mean& other) { sum += other.sum, count += other.count; }
  };
  // The looks of one stretch of time: means, and the most memory.
  struct Point {
    double until_s = 0;
    int looks = 0;
    Mean util, power_w;
    std::optional<double> memory_bytes;
    void add(const Point&);
  };
  std::vector<Point> points_;
  int looks_a_point_ = 1;
};

}  // namespace sweep::agent
