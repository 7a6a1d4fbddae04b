#include "schema/calibration.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/number_in.h"
#include "schema/codec.h"
#include "schema/frame.h"

namespace sweep {
namespace {

using Json = nlohmann::json;

constexpr i64 kMostBytes = i64{1} << 40;

bool plausible(const MatmulTiming& t) {
  return t.m > 0 && t.n > 0 && t.k > 0;
}
bool plausible(const CopyTiming& t) {
  return t.bytes > 0;
}
// Sizes above 0, joined by x.
bool plausible(const KernelTiming& t) {
  if (t.op.empty() || t.shape.size() > 100) return false;
  for (std::size_t from = 0; from <= t.shape.size();) {
    const std::size_t end = std::min(t.shape.find('x', from), t.shape.size());
    const auto size = number_in<i64>(std::string_view(t.shape).substr(from, end - from));
    if (!size || *size < 1) return false;
    from = end + 1;
  }
  return true;
}
bool plausible(const GroupTiming& t) {
  return t.bytes > 0 && t.wrong >= 0;
}

template <class T>
Expected<void> check_all(const std::vector<T>& list, const char* name) {
  for (const T& item : list)
    if (!plausible(item) || !std::isfinite(item.seconds) || item.seconds <= 0)
      return fail(std::string(name) + " holds a measurement that cannot be: " + to_text(item));
  return {};
}

}  // namespace

std::string to_text(const CalibrationRequest& r) {
  return dump({{"machine", r.machine},
               {"kernels", r.kernels},
               {"group", r.group},
               {"precisions", r.precisions},
               {"smallest_bytes", r.smallest_bytes},
               {"largest_bytes", r.largest_bytes},
               {"item_s", r.item_s}});
}

Expected<CalibrationRequest> calibration_request_from(std::string_view text) {
  SWEEP_GET(const auto json, parse_json(text));
  CalibrationRequest r;
  r.machine = flag_of(json, "machine");
  r.kernels = flag_of(json, "kernels");
  r.group = text_of(json, "group");
  if (json.contains("precisions") && json["precisions"].is_array())
    for (const Json& word : json["precisions"])
      if (word.is_string()) r.precisions.push_back(word.get<std::string>());
  r.smallest_bytes = integer_of(json, "smallest_bytes");
  r.largest_bytes = integer_of(json, "largest_bytes");
  r.item_s = number_of(json, "item_s");
  if (!r.group.empty() && r.group != "tp" && r.group != "dp")
    return fail("a calibration measures the group tp or dp, not '" + r.group + "'");
  if (r.smallest_bytes < 4 || r.largest_bytes < r.smallest_bytes || r.largest_bytes > kMostBytes)
    return fail("the sizes of a calibration must be between 4 bytes and 1 TiB, the smallest first");
  if (!(r.item_s > 0) || r.item_s > 60) return fail("a measurement of a calibration takes up to 60 s");
  return r;
}

Expected<void> check(const CalibrationFindings& f) {
  SWEEP_TRY(check_all(f.matmul, "matmul"));
  SWEEP_TRY(check_all(f.copies, "copies"));
  SWEEP_TRY(check_all(f.collectives, "collectives"));
  SWEEP_TRY(check_all(f.kernels, "kernels"));
  if (!std::isfinite(f.launch_s) || f.launch_s < 0)
    return fail("launch_s cannot be " + std::to_string(f.launch_s));
  return {};
}

}  // namespace sweep
