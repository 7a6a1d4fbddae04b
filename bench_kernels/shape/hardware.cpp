// The hardware catalogue, hardware.json. Peaks are DENSE: NVIDIA's data sheets print tensor-core numbers with 2:4
// sparsity from Ampere on, twice what training can use. Memory is what the driver reports (nvidia-smi memory.total,
// rocm-smi), not the marketing size. Bandwidths are of one direction; inter-node bandwidth is the network of the priced
// node type divided by its GPUs, else one 400 Gbit/s port per GPU. Multiprocessors: NVIDIA's architecture white papers
// (GV100, GA100, GA102, AD104, GH100). Phantom GPUs read the same entries.
//
// product_reach is the "maximum achievable matmul FLOPS" in bf16 over the peak, by torch.matmul (Stas Bekman's Machine
// Learning Engineering, compute/accelerator/README.md of github.com/stas00/ml-engineering at 744d01e, 2026): 271.2 of 312
// on A100, 794.5 of 989 on H100 ("H200 is the same"), 1,745 of 2,250 on B200, 1,769 on B300, 1,822 of 2,500 on GB200. GB300
// has the chip of B300 and was not measured. Its table of fp8 is not used: rates of NeMo on H100
// (sweeps/data/published_training.csv) are those of products that reach as large a share of fp8's peak as of 16 bits'.
//
// Prices are list prices, Linux, on demand. A date is the day on which the price was read and published
// it: of 2026-11-09 the table of github.com/datareceipts/data-receipts (109-gpu-pricing), of 2026-08-06 the
// offers listed in github.com/dstackai/dstack pull request 4110, of 2026-01-21 the copy of
// instances.vantage.sh in github.com/tsaol/aws-gpu (data/), of 2026-08-26 and 2026-09-20 the providers' pages as
// github.com/api-evangelist transcribed them (nexgen-cloud and coreweave, plans/), of 2026-10-08 DigitalOcean's list
// in huggingface.co/datasets/tokenwatt/gpu-cloud-prices, of 2026-05-12 the tracker that is named. Earlier dates are
// those on which AWS announced an instance with its price. Where no price was found the source says so, with the day.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/catalogue_text.h"
#include "bench_kernels/shape/mixed_hardware.h"

namespace sweep::shape {
namespace {

Hardware hardware_of(const nlohmann::json& entry) {
  Hardware h;
  entry.at("hardware").get_to(h.name);
  h.gpu = entry.value("name", "");
  h.gpus_per_node = entry.value("gpus_per_node", h.gpus_per_node);
  h.linked_gpus = entry.value("linked_gpus", h.linked_gpus);
  if (entry.contains("memory_bytes")) h.memory_bytes = entry.at("memory_bytes").get<i64>();
  h.multiprocessors = entry.value("multiprocessors", h.multiprocessors);
  h.compute_capability = entry.value("compute_capability", "");
  entry.at("memory_bandwidth").get_to(h.memory_bandwidth);
  entry.at("intra_node_bandwidth").get_to(h.intra_node_bandwidth);
  entry.at("inter_node_bandwidth").get_to(h.inter_node_bandwidth);
  h.peak_flops = entry.value("peak_flops", h.peak_flops);
  h.product_reach = entry.value("product_reach", h.product_reach);
  // Only the latest price is used. Earlier ones document the cost of older results.
  for (const auto& price : entry.value("prices", nlohmann::json::array())) {
    if (h.price) h.earlier_prices.push_back(*h.price);
    h.price = Price{price.at("usd_per_node_hour"), price.at("source"), price.at("date")};
  }
  return h;
}

std::vector<Hardware> build_hardware() {
  std::vector<Hardware> v;
  for (const auto& entry : nlohmann::json::parse(hardware_texts().front().json))
    v.push_back(hardware_of(entry));
  return v;
}

}  // namespace

double Hardware::ring_bandwidth(double ranks, double nodes) const {
  if (nodes <= 1) return intra_node_bandwidth;
  return std::min(intra_node_bandwidth, inter_node_bandwidth * std::max(1.0, ranks / nodes));
}

std::optional<double> Hardware::peak_for(Precision precision, bool tf32) const {
  const std::string_view word = tf32 ? "tf32" : to_string(precision);
  const auto it = peak_flops.find(std::string(word.substr(0, word.find('_'))));
  if (it == peak_flops.end()) return std::nullopt;
  return it->second;
}

std::optional<std::string> tf32_objection(const Trial& t) {
  if (!t.tf32) return std::nullopt;
  if (t.precision != Precision::kFp32)
    return fmt::format("tf32 is about matrix products in fp32, and precision is {}", t.precision);
  const Hardware* h = known_hardware(t.hardware);
  if (h == nullptr || h->peak_flops.contains("tf32")) return std::nullopt;
  return fmt::format("{} has no TF32 units; leave tf32 out", t.hardware);
}

std::optional<Price> published_price(std::string_view hardware, double usd_per_node_hour) {
  const auto found = find_hardware(hardware);
  if (!found || !found->price) return std::nullopt;
  if (found->price->usd_per_node_hour == usd_per_node_hour) return found->price;
  for (const Price& price : found->earlier_prices)
    if (price.usd_per_node_hour == usd_per_node_hour) return price;
  return std::nullopt;
}

bool older_than_a_year(const Price& price, std::string_view today) {
  if (price.date.size() != 10 || today.size() < 10) return false;
  std::string limit = price.date;  // ISO dates compare as text
  int year = 0;
  std::from_chars(limit.data(), limit.data() + 4, year);
  limit.replace(0, 4, fmt::format("{:04}", year + 1));
  return limit < today.substr(0, 10);
}

std::span<const Hardware> all_hardware() {
  static const std::vector<Hardware> hardware = build_hardware();
  return hardware;
}

namespace {

// A mix is made when it is first named, and kept, as the catalogue's entries are.
const Hardware* known_mix(std::string_view name) {
  static std::mutex one_at_a_time;
  static std::map<std::string, std::optional<Hardware>, std::less<>> made;
  const std::scoped_lock lock(one_at_a_time);
  auto found = made.find(name);
  if (found == made.end()) {
    auto mix = mixed_hardware(name);
    found = made.emplace(name, mix ? std::optional(std::move(*mix)) : std::nullopt).first;
  }
  return found->second ? &*found->second : nullptr;
}

}  // namespace

const Hardware* known_hardware(std::string_view name) {
  for (const Hardware& h : all_hardware())
    if (h.name == name) return &h;
  return is_mixed(name) ? known_mix(name) : nullptr;
}

namespace {

// A name of the same device before one that is nearer by its letters: "a100-sxm-80gb" means an A100.
std::optional<std::string> meant_hardware(std::string_view name, std::vector<std::string> names) {
  const auto device = [](std::string_view full) { return full.substr(0, full.find('-')); };
  std::vector<std::string> same;
  for (const std::string& known : names)
    if (device(known) == device(name)) same.push_back(known);
  if (same.size() == 1) return same.front();
  return nearest(name, same.empty() ? names : same);
}

}  // namespace

Expected<Hardware> find_hardware(std::string_view name) {
  if (const Hardware* known = known_hardware(name)) return *known;
  if (is_mixed(name)) return mixed_hardware(name);
  std::vector<std::string> names;
  for (const Hardware& h : all_hardware()) names.push_back(h.name);
  const auto close = meant_hardware(name, names);
  return fail(ErrorKind::kUnknownName, name, "unknown hardware '{}'{}; known: {}", name,
              close ? fmt::format(" (did you mean '{}'?)", *close) : "", fmt::join(names, ", "));
}

}  // namespace sweep::shape
