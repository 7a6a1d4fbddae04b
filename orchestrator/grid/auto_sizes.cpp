#include "orchestrator/grid/auto_sizes.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "base/expected.h"
#include "orchestrator/grid/read_values.h"
#include "schema/axis_domain.h"

namespace sweep::grid {
namespace {

constexpr std::string_view kAxis = "micro_batch_size", kAuto = "auto";
constexpr i64 kLargest = 1024;

struct Bounds {
  i64 first = 1, last = kLargest;
};

Expected<Bounds> bounds_of(const Document& document, const Node& node) {
  if (node.is_scalar()) return Bounds{};
  SWEEP_TRY(check_keys(document, node, std::array{kAuto}, fmt::format("of {}", kAxis)));
  const Node& list = *node.entries[0].value;
  if (!list.is_list() || list.items.size() != 2)
    return tl::unexpected(document.error(list.place, {ErrorKind::kInvalidValue, kAuto},
                                         "auto takes [first, last], as in {auto: [1, 64]}"));
  const i64 most = axis_domain(kAxis)->max;
  const auto first = read_int(document, *list.items[0], kAxis, 1, most);
  if (!first) return tl::unexpected(first.error());
  const auto last = read_int(document, *list.items[1], kAxis, 1, most);
  if (!last) return tl::unexpected(last.error());
  if (*first >= *last)
    return tl::unexpected(document.error(
        list.place, {ErrorKind::kInvalidValue, kAuto},
        fmt::format("auto from {} to {} leaves nothing to choose; write the smaller number first, "
                    "or a single value",
                    *first, *last)));
  return Bounds{*first, *last};
}

}  // namespace

bool is_auto(const Node& node) {
  return (node.is_scalar() && node.text == kAuto) || (node.is_map() && node.find(kAuto) != nullptr);
}

Expected<Dimension> auto_sizes(const Document& document, const Node& node, Slot slot) {
  const auto bounds = bounds_of(document, node);
  if (!bounds) return tl::unexpected(bounds.error());
  Dimension out;
  out.slots = {slot};
  out.automatic = true;
  for (i64 size = 1; size < bounds->last;) {
    if (size >= bounds->first) out.cells.push_back({size});
    const auto doubling = static_cast<i64>(std::bit_floor(static_cast<std::uint64_t>(size)));
    size += std::max<i64>(1, doubling / 8);
  }
  out.cells.push_back({bounds->last});
  out.count = out.cells.size();
  out.held.assign(out.count, Presence::kValue);
  return out;
}

}  // namespace sweep::grid
