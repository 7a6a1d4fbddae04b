// HardwareProfile: what `sweep calibrate` measured of one kind of hardware, and the few numbers fitted to it
// by which the plan predicts. It is pure arithmetic and JSON; who measures and who stores it is elsewhere.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "schema/calibration.h"

namespace sweep::shape {

// A collective of one group: the slowest group of its kind counts.
struct CollectiveRow {
  std::string kind, backend;
  i64 ranks = 2, nodes = 1;  // size of one group
  i64 bytes = 0;             // counted like nccl-tests: the whole tensor; for send the message
  double seconds = 0;
  i64 wrong = 0;
  bool operator==(const CollectiveRow&) const = default;
};

// Bandwidths as nccl-tests define them (PERFORMANCE.md): bytes over time; and that times what the links carry
// for each byte, so that kinds and group sizes compare with the speed of a link.
double algorithm_bandwidth(const CollectiveRow&);
double bus_factor(std::string_view kind, i64 ranks);
double bus_bandwidth(const CollectiveRow&);

// seconds = overhead + operations / rate + bytes / bandwidth, each 0 or more.
struct MatmulCost {
  std::string precision;
  double overhead_s = 0, flops = 0, bandwidth = 0;  // a term that does not show is infinite
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
  std::string name;      // the user's name for it; by default the catalogue's
  std::string hardware;  // the catalogue's name
  std::string hosts, build, date;
  i64 threads = 1;  // threads of a CPU rank
  std::vector<MatmulTiming> matmul;
  std::vector<CopyTiming> copies;
  double launch_s = 0;
  std::vector<CollectiveRow> collectives;
  std::vector<KernelTiming> kernels;  // further kernels, for the kernel table of phantom GPUs; not fitted
  // The costs that fit() fits to the measurements. They are not in the JSON.
  std::vector<MatmulCost> products;
  std::vector<LinkCost> links;
  double copy_bandwidth = 0;  // bandwidth of the largest copy, which no cache holds; 0: not measured

  void fit();
  // The cost in that precision, else in the nearest that was measured; null: none was.
  const MatmulCost* product(std::string_view precision) const;
  // The kind's row of that backend: nodes first, then ranks, the nearest by ratio. Null: it was not measured.
  const LinkCost* link(std::string_view kind, std::string_view backend, double ranks, double nodes) const;
};

std::string to_json(const HardwareProfile&);
// Reads a profile and does its fit. Error: no JSON, no name, a number that cannot be.
Expected<HardwareProfile> hardware_profile_from_json(std::string_view text);

}  // namespace sweep::shape
