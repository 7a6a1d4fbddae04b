#include "orchestrator/export/text.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sweep::exports {

std::string shortest(double value) {
  if (!std::isfinite(value)) return {};
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::string valid_utf8(std::string_view raw) {
  std::string text(raw);
  for (std::size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', at))
    text.replace(at, 1, "\xEF\xBF\xBD");
  const std::string quoted =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted).get<std::string>();
}

}  // namespace sweep::exports
