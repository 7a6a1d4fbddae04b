#include "bench_kernels/shape/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "base/number_in.h"

namespace sweep::shape {
namespace {

constexpr std::array kColumns = {"operator", "shape", "type", "gpu", "us"};
enum Column { kOperator, kShape, kType, kGpu, kMicroseconds };

std::vector<std::string> cells_in(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string> out;
  for (std::size_t from = 0; from <= line.size();) {
    const std::size_t end = std::min(line.find(',', from), line.size());
    out.emplace_back(line.substr(from, end - from));
    from = end + 1;
  }
  return out;
}

Error at_line(std::size_t line, const std::string& what) {
  return {.message = fmt::format("line {}: {}", line, what),
          .kind = ErrorKind::kInvalidValue,
          .line = static_cast<int>(line)};
}

// Where each column stands in the header.
Expected<std::array<std::size_t, kColumns.size()>> places_in(const std::vector<std::string>& header) {
  std::array<std::size_t, kColumns.size()> out{};
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    const auto found = std::ranges::find(header, kColumns[i]);
    if (found == header.end())
      return tl::unexpected(at_line(
          1,
          fmt::format("there is no column {}; a kernel table has operator,shape,type,gpu,us", kColumns[i])));
    out[i] = static_cast<std::size_t>(found - header.begin());
  }
  return out;
}

}  // namespace

std::string kernel_table(const HardwareProfile& p) {
  std::string out = "operator,shape,type,gpu,us\n";
  const auto add = [&](std::string_view op, const std::string& shape, std::string_view type, double seconds) {
    out += fmt::format("{},{},{},{},{:.6g}\n", op, shape, type, p.hardware, 1e6 * seconds);
  };
  for (const MatmulTiming& r : p.matmul)
    add("mm", fmt::format("{}x{}x{}", r.m, r.n, r.k), r.precision, r.seconds);
  for (const CopyTiming& r : p.copies) add("memory", std::to_string(r.bytes), "", r.seconds);
  for (const KernelTiming& r : p.kernels) add(r.op, r.shape, r.type, r.seconds);
  return out;
}

Expected<std::vector<KernelTiming>> read_kernel_table(std::string_view csv, std::string_view hardware) {
  std::vector<KernelTiming> out;
  std::optional<std::array<std::size_t, kColumns.size()>> at;
  for (std::size_t number = 1, from = 0; from < csv.size(); ++number) {
    const std::size_t end = std::min(csv.find('\n', from), csv.size());
    const auto cells = cells_in(csv.substr(from, end - from));
    from = end + 1;
    if (!at) {
      const auto places = places_in(cells);
      if (!places) return tl::unexpected(places.error());
      at = *places;
      continue;
    }
    if (cells.size() == 1 && cells.front().empty()) continue;
    if (cells.size() <= *std::ranges::max_element(*at))
      return tl::unexpected(at_line(number, "it has fewer cells than the header"));
    const auto cell = [&](Column c) { return cells[(*at)[c]]; };
    if (!cell(kGpu).empty() && cell(kGpu) != hardware) continue;
    const auto us = number_in<double>(cell(kMicroseconds));
    KernelTiming row{cell(kOperator), cell(kShape), cell(kType), us.value_or(0) / 1e6};
    if (const auto sound = check(CalibrationFindings{{}, {}, 0, {}, {row}}); !sound)
      return tl::unexpected(at_line(number, sound.error().message));
    out.push_back(std::move(row));
  }
  if (out.empty())
    return fail(ErrorKind::kInvalidValue, "gpu", fmt::format("no row is of the hardware {}", hardware));
  return out;
}

void add_kernels(std::vector<KernelTiming>& to, const std::vector<KernelTiming>& rows) {
  for (const KernelTiming& row : rows) {
    const auto same = std::ranges::find_if(to, [&](const KernelTiming& r) {
      return std::tie(r.op, r.shape, r.type) == std::tie(row.op, row.shape, row.type);
    });
    same == to.end() ? to.push_back(row) : void(*same = row);
  }
}

}  // namespace sweep::shape
