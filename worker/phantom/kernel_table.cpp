#include "worker/phantom/kernel_table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>

namespace sweep::phantom {
namespace {

// A shape this many doublings away, over all its sizes, tells more than the model does; one further off does not.
constexpr double kReach = 4;
// A kernel that takes longer than so many times what the device's peaks allow is warned of.
constexpr double kSlow = 10;
constexpr double kMostMicroseconds = 1e9;

std::vector<std::string> cells_of(std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  std::vector<std::string> out(1);
  for (const char c : line) c == ',' ? void(out.emplace_back()) : out.back().push_back(c);
  return out;
}

double positive(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(value > 0) || value > 1e15)
    throw std::runtime_error("\"" + text.substr(0, 40) + "\" is no number above 0");
  return value;
}

std::vector<double> sizes_of(const std::string& shape) {
  std::vector<double> out;
  std::istringstream parts(shape);
  for (std::string part; std::getline(parts, part, 'x');) out.push_back(positive(part));
  if (out.empty()) throw std::runtime_error("a row has no shape, such as 4096x4096x4096");
  return out;
}

// Rows and columns of a product change places with its layout, so the larger comes first.
std::vector<double> in_order(const std::string& op, std::vector<double> sizes) {
  if ((op == "mm" || op == "bmm") && sizes.size() >= 3 && sizes.rbegin()[2] < sizes.rbegin()[1])
    std::swap(sizes.rbegin()[2], sizes.rbegin()[1]);
  return sizes;
}

// The column of each name; the five must be there.
std::map<std::string, std::size_t> columns_of(const std::vector<std::string>& header) {
  std::map<std::string, std::size_t> out;
  for (std::size_t i = 0; i < header.size(); ++i) out.emplace(header[i], i);
  for (const char* name : {"operator", "shape", "type", "gpu", "us"})
    if (!out.contains(name)) throw std::runtime_error(std::string("there is no column ") + name);
  return out;
}

// One line for each operator and fault.
void warn(const KernelWork& work, Ns measured, Ns fastest, bool slow) {
  std::string shape;
  for (const double size : work.sizes)
    shape += (shape.empty() ? "" : "x") + std::to_string(static_cast<long long>(size));
  const auto us = [](Ns time) { return std::to_string(static_cast<double>(time) / 1e3) + " us"; };
  say_once(work.op + (slow ? " slow" : " fast"),
           work.op + " " + work.type + " " + shape + " takes " + us(measured) +
               " by the kernel table, where the " + "device's peaks allow " + us(fastest) +
               (slow ? "; is the table of another GPU?"
                     : ": the peaks' time is taken; is the table of another GPU?"));
}

}  // namespace

KernelTable KernelTable::read(const std::string& csv, const std::string& gpu) {
  KernelTable out;
  std::istringstream lines(csv);
  std::string line;
  std::map<std::string, std::size_t> at;
  std::size_t width = 0;  // columns of the header, in which a name may stand twice
  for (int number = 1; std::getline(lines, line); ++number) try {
      const auto cells = cells_of(line);
      if (at.empty()) {
        at = columns_of(cells), width = cells.size();
        continue;
      }
      if (line.empty() || line == "\r") continue;
      if (cells.size() < width) throw std::runtime_error("a row has fewer cells than there are columns");
      const std::string& of = cells[at["gpu"]];
      if (!of.empty() && of != gpu) continue;
      const double us = positive(cells[at["us"]]);
      if (us > kMostMicroseconds) throw std::runtime_error("a kernel of more than 1000 s");
      const std::string& op = cells[at["operator"]];
      out.rows_.push_back({{op, cells[at["type"]], in_order(op, sizes_of(cells[at["shape"]]))},
                           std::max<Ns>(1, std::llround(us * 1e3))});
    } catch (const std::exception& e) {
      throw std::runtime_error("line " + std::to_string(number) + ": " + e.what());
    }
  if (at.empty()) throw std::runtime_error("it is empty: a header operator,shape,type,gpu,us is needed");
  return out;
}

KernelTable::Nearest KernelTable::nearest(const KernelWork& asked) const {
  Nearest out;
  for (const Row& row : rows_) {
    if (row.work.op != asked.op || row.work.type != asked.type || row.work.sizes.size() != asked.sizes.size())
      continue;
    double away = 0;
    for (std::size_t i = 0; i < asked.sizes.size(); ++i)
      away += std::abs(std::log2(asked.sizes[i] / row.work.sizes[i]));
    if (away <= kReach && (out.row == nullptr || away <= out.away)) out = {&row, away};
  }
  return out;
}

KernelTime KernelTable::time(KernelWork asked, const Model& model) const {
  asked.sizes = in_order(asked.op, std::move(asked.sizes));
  const Cost own = model(asked.sizes);
  const auto [row, away] = nearest(asked);
  KernelTime out{own.modelled, Source::kModel};
  if (row != nullptr) {
    const double scale = away == 0
                             ? 1
                             : static_cast<double>(own.modelled) /
                                   static_cast<double>(std::max<Ns>(1, model(row->work.sizes).modelled));
    out = {std::llround(static_cast<double>(row->lasts) * scale),
           away == 0 ? Source::kTable : Source::kScaled};
    const Ns slow = static_cast<Ns>(kSlow) * std::max(own.fastest, description().profile.kernel_floor);
    if (out.lasts < own.fastest || out.lasts > slow) warn(asked, out.lasts, own.fastest, out.lasts > slow);
  }
  out.lasts = std::max(out.lasts, own.fastest);
  return out;
}

}  // namespace sweep::phantom
