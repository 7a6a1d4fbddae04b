#include "schema/calibration.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "schema/codec.h"
#include "schema/frame.h"

namespace sweep {
namespace {

using Json = nlohmann::json;

constexpr i64 kMostBytes = i64{1} << 40;

Json to_json(const MatmulTiming& t) {
  return {{"precision", t.precision}, {"m", t.m}, {"n", t.n}, {"k", t.k}, {"seconds", t.seconds}};
}
Json to_json(const CopyTiming& t) {
  return {{"bytes", t.bytes}, {"seconds", t.seconds}};
}
Json to_json(const GroupTiming& t) {
  return {{"kind", t.kind}, {"bytes", t.bytes}, {"seconds", t.seconds}, {"wrong", t.wrong}};
}

template <class T>
Json list_of(const std::vector<T>& items) {
  Json out = Json::array();
  for (const T& item : items) out.push_back(to_json(item));
  return out;
}

MatmulTiming read(const Json& j, MatmulTiming*) {
  return {text_of(j, "precision"), integer_of(j, "m"), integer_of(j, "n"), integer_of(j, "k"),
          number_of(j, "seconds")};
}
CopyTiming read(const Json& j, CopyTiming*) {
  return {integer_of(j, "bytes"), number_of(j, "seconds")};
}
GroupTiming read(const Json& j, GroupTiming*) {
  return {text_of(j, "kind"), integer_of(j, "bytes"), number_of(j, "seconds"), integer_of(j, "wrong")};
}

bool plausible(const MatmulTiming& t) {
  return t.m > 0 && t.n > 0 && t.k > 0;
}
bool plausible(const CopyTiming& t) {
  return t.bytes > 0;
}
bool plausible(const GroupTiming& t) {
  return t.bytes > 0 && t.wrong >= 0;
}

template <class T>
Expected<std::vector<T>> read_list(const Json& whole, const char* name) {
  std::vector<T> out;
  if (!whole.contains(name)) return out;
  if (!whole[name].is_array()) return fail(std::string(name) + " is no list");
  for (const Json& each : whole[name]) {
    T item = read(each, static_cast<T*>(nullptr));
    if (!plausible(item) || !std::isfinite(item.seconds) || item.seconds <= 0)
      return fail(std::string(name) + " holds a measurement that cannot be: " + dump(each));
    out.push_back(std::move(item));
  }
  return out;
}

template <class T>
Expected<void> take(const Json& whole, const char* name, std::vector<T>& into) {
  auto list = read_list<T>(whole, name);
  if (!list) return tl::unexpected(list.error());
  into = std::move(*list);
  return {};
}

}  // namespace

std::string to_text(const CalibrationRequest& r) {
  return dump({{"machine", r.machine},
               {"group", r.group},
               {"precisions", r.precisions},
               {"smallest_bytes", r.smallest_bytes},
               {"largest_bytes", r.largest_bytes},
               {"item_s", r.item_s}});
}

Expected<CalibrationRequest> calibration_request_from(std::string_view text) {
  const auto json = parse_json(text);
  if (!json) return tl::unexpected(json.error());
  CalibrationRequest r;
  r.machine = flag_of(*json, "machine");
  r.group = text_of(*json, "group");
  if (json->contains("precisions") && (*json)["precisions"].is_array())
    for (const Json& word : (*json)["precisions"])
      if (word.is_string()) r.precisions.push_back(word.get<std::string>());
  r.smallest_bytes = integer_of(*json, "smallest_bytes");
  r.largest_bytes = integer_of(*json, "largest_bytes");
  r.item_s = number_of(*json, "item_s");
  if (!r.group.empty() && r.group != "tp" && r.group != "dp")
    return fail("a calibration measures the group tp or dp, not '" + r.group + "'");
  if (r.smallest_bytes < 4 || r.largest_bytes < r.smallest_bytes || r.largest_bytes > kMostBytes)
    return fail("the sizes of a calibration must be between 4 bytes and 1 TiB, the smallest first");
  if (!(r.item_s > 0) || r.item_s > 60) return fail("a measurement of a calibration takes up to 60 s");
  return r;
}

std::string to_text(const CalibrationFindings& f) {
  return dump({{"matmul", list_of(f.matmul)},
               {"copies", list_of(f.copies)},
               {"launch_s", f.launch_s},
               {"collectives", list_of(f.collectives)}});
}

Expected<CalibrationFindings> calibration_findings_from(std::string_view text) {
  const auto json = parse_json(text);
  if (!json) return tl::unexpected(json.error());
  if (!json->is_object()) return fail("the findings of a calibration are no JSON object");
  CalibrationFindings f;
  SWEEP_TRY(take(*json, "matmul", f.matmul));
  SWEEP_TRY(take(*json, "copies", f.copies));
  SWEEP_TRY(take(*json, "collectives", f.collectives));
  f.launch_s = number_of(*json, "launch_s");
  if (!std::isfinite(f.launch_s) || f.launch_s < 0)
    return fail("launch_s cannot be " + std::to_string(f.launch_s));
  return f;
}

}  // namespace sweep
