#include "schema/labels.h"

namespace sweep {

// Asked for each axis of each row: the text is not parsed.
bool knows_axis(std::string_view labels, std::string_view axis) {
  constexpr std::string_view kBegin = R"({"@axes":")";
  if (!labels.starts_with(kBegin)) return true;
  labels.remove_prefix(kBegin.size());
  labels = labels.substr(0, labels.find('"'));
  for (auto at = labels.find(axis); at != std::string_view::npos; at = labels.find(axis, at + 1)) {
    const auto end = at + axis.size();
    if (at > 0 && labels[at - 1] == ' ' && end < labels.size() && labels[end] == ' ') return true;
  }
  return false;
}

}  // namespace sweep
