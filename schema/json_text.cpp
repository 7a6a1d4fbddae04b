// Bounded JSON parsing and safe dumping.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "schema/codec.h"

namespace sweep {
namespace {

// Deepest nesting of brackets outside strings; one pass, no recursion, so that depth is refused before
// parsing.
int nesting(std::string_view bytes) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Expected<nlohmann::json> parse_json(std::string_view bytes, std::size_t max_bytes, int max_depth) {
  if (bytes.size() > max_bytes)
    return fail(fmt::format("JSON of {} bytes is longer than the {} allowed", bytes.size(), max_bytes));
  if (nesting(bytes) > max_depth) return fail(fmt::format("JSON is nested deeper than {} levels", max_depth));
  try {
    return nlohmann::json::parse(bytes.begin(), bytes.end());
  } catch (const nlohmann::json::parse_error& e) {
    return fail(fmt::format("not JSON at byte {}: {}", e.byte, e.what()));
  } catch (const nlohmann::json::exception& e) {
    return fail(fmt::format("not JSON: {}", e.what()));
  }
}

std::string dump(const nlohmann::json& j) {
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sweep
