#include "bench_kernels/shape/kernel_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "base/fail.h"
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

// The place of each column in the header.
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

struct Operator {
  std::string_view name;
  std::size_t sizes;  // number of sizes of its shape
  std::vector<std::string_view> types;
};

const std::vector<Operator>& operators() {
  static const std::vector<std::string_view> of_products{"bf16", "fp16", "fp32", "tf32", "fp8"};
  static const std::vector<Operator> all{{"mm", 3, of_products},
                                         {"bmm", 4, of_products},
                                         {"attention", 3, {"bf16"}},
                                         {"attention_causal", 3, {"bf16"}},
                                         {"attention_backward", 3, {"bf16"}},
                                         {"attention_backward_causal", 3, {"bf16"}},
                                         {"memory", 1, {""}}};
  return all;
}

// Why no kernel would ever match the row; empty: some may.
std::string never_matches(const KernelTiming& row) {
  const auto found = std::ranges::find(operators(), row.op, &Operator::name);
  if (found == operators().end()) {
    std::string known;
    for (const Operator& each : operators()) known += (known.empty() ? "" : ", ") + std::string(each.name);
    return fmt::format("no operator is called '{}'; known are {}", row.op, known);
  }
  const auto sizes = static_cast<std::size_t>(std::ranges::count(row.shape, 'x')) + 1;
  if (sizes != found->sizes)
    return fmt::format("shape '{}' has {} sizes; {} has {}", row.shape, sizes, row.op, found->sizes);
  if (std::ranges::find(found->types, row.type) == found->types.end())
    return fmt::format("{} has no type '{}'; it has {}", row.op, row.type,
                       found->types == std::vector<std::string_view>{""}
                           ? "none"
                           : fmt::to_string(fmt::join(found->types, ", ")));
  return {};
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
  std::set<std::string> others;
  std::optional<std::array<std::size_t, kColumns.size()>> at;
  for (std::size_t number = 1, from = 0; from < csv.size(); ++number) {
    const std::size_t end = std::min(csv.find('\n', from), csv.size());
    const auto cells = cells_in(csv.substr(from, end - from));
    from = end + 1;
    if (!at) {
      SWEEP_GET(at, places_in(cells));
      continue;
    }
    if (cells.size() == 1 && cells.front().empty()) continue;
    if (cells.size() <= *std::ranges::max_element(*at))
      return tl::unexpected(at_line(number, "it has fewer cells than the header"));
    const auto cell = [&](Column c) { return cells[(*at)[c]]; };
    if (!cell(kGpu).empty() && cell(kGpu) != hardware) {
      others.insert(cell(kGpu));
      continue;
    }
    const auto us = number_in<double>(cell(kMicroseconds));
    if (!us || !std::isfinite(*us) || *us <= 0)
      return tl::unexpected(at_line(
          number, fmt::format("us is '{}'; it takes microseconds, a number above 0", cell(kMicroseconds))));
    KernelTiming row{cell(kOperator), cell(kShape), cell(kType), *us / 1e6};
    if (const auto sound = check(CalibrationFindings{{}, {}, 0, {}, {row}}); !sound)
      return tl::unexpected(at_line(number, sound.error().message));
    if (const std::string why = never_matches(row); !why.empty()) return tl::unexpected(at_line(number, why));
    out.push_back(std::move(row));
  }
  if (out.empty() && others.empty())
    return fail(ErrorKind::kMissing, "gpu", "the table has no rows; each is operator,shape,type,gpu,us");
  if (out.empty())
    return fail(ErrorKind::kInvalidValue, "gpu", "no row is of the hardware {}; the column gpu has {}",
                hardware, fmt::join(others, ", "));
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
