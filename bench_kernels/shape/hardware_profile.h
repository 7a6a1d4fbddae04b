// HardwareProfile: what `sweep calibrate` measured of one kind of hardware, and the few numbers fitted to it
// by which the plan predicts. It is pure arithmetic and JSON; who measures and who stores it is elsewhere.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/calibration.h"

namespace sweep::shape {

// A collective of one group: the slowest group of its kind counts.
struct CollectiveRow {
  std::string kind, backend;
  i64 ranks = 2, nodes = 1;  // of one group
  i64 bytes = 0;             // as nccl-tests count them: the whole tensor, of send the message
  double seconds = 0;
  i64 wrong = 0;
  bool operator==(const CollectiveRow&) const = default;
};

// As nccl-tests define them (PERFORMANCE.md): bytes over time; and that times what the links carry for each
// byte, so that kinds and group sizes compare with the speed of a link.
double algorithm_bandwidth(const CollectiveRow&);
double bus_factor(std::string_view kind, i64 ranks);
double bus_bandwidth(const CollectiveRow&);

// seconds = overhead + operations / rate + bytes / bandwidth, each 0 or more.
struct MatmulCost {
  std::string precision;
  double overhead_s = 0, flops = 0, bandwidth = 0;  // of a term that does not show: infinite
  double element = 4;                               // bytes
  double error = 0;                                 // nine of ten measured products lie within this share
  double seconds(double m, double n, double k) const;
};
// seconds = latency + bytes x bus factor / bandwidth.
struct LinkCost {
  std::string kind, backend;
  i64 ranks = 2, nodes = 1;
  double latency_s = 0, bandwidth = 0;
  double error = 0;
  double seconds(double bytes) const;
};

struct HardwareProfile {
  std::string name;      // as the user calls it; by default the catalogue's name
  std::string hardware;  // of the catalogue
  std::string hosts, build, date;
  i64 threads = 1;  // of a rank on processors
  std::vector<MatmulTiming> matmul;
  std::vector<CopyTiming> copies;
  double launch_s = 0;
  std::vector<CollectiveRow> collectives;
  // What is fitted to them: fit() fills it. Not in the JSON.
  std::vector<MatmulCost> products;
  std::vector<LinkCost> links;
  double copy_bandwidth = 0;  // of the largest copy, which no cache holds; 0: not measured

  void fit();
  // Of that precision, else of the nearest that was measured; null: none was.
  const MatmulCost* product(std::string_view precision) const;
  // The kind's row of that backend: nodes first, then ranks, the nearest by ratio. Null: it was not measured.
  const LinkCost* link(std::string_view kind, std::string_view backend, double ranks, double nodes) const;
};

std::string to_json(const HardwareProfile&);
// With the fit done. Error: no JSON, no name, a number that cannot be.
Expected<HardwareProfile> hardware_profile_from_json(std::string_view text);

}  // namespace sweep::shape
