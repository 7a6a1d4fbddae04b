#include "schema/hardware_kinds.h"

namespace sweep {

std::vector<std::string> kinds_of(std::string_view hardware) {
  std::vector<std::string> out;
  for (;;) {
    const auto end = hardware.find('+');
    out.emplace_back(hardware.substr(0, end));
    if (end == std::string_view::npos) return out;
    hardware.remove_prefix(end + 1);
  }
}

std::string kind_of_node(std::string_view hardware, i64 node) {
  const auto kinds = kinds_of(hardware);
  return kinds[static_cast<std::size_t>(node) % kinds.size()];
}

}  // namespace sweep
