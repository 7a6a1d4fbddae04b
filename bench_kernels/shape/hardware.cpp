// The hardware catalogue. Peaks are DENSE: NVIDIA's data sheets print tensor-core numbers with 2:4 sparsity
// from Ampere on, twice what training can use. Memory is what the driver reports (nvidia-smi memory.total),
// not the marketing size. Inter-node bandwidth is the network of the priced node type divided by its GPUs,
// else one 400 Gbit/s port per GPU.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/linked_gpus.h"

namespace sweep::shape {
namespace {

// Prices are list prices, Linux, on demand. A date is the day on which the price was read and published
// it: of 2026-11-09 the table of github.com/datareceipts/data-receipts (109-gpu-pricing), of 2026-08-06 the
// offers listed in github.com/dstackai/dstack pull request 4110, of 2026-01-21 the copy of
// instances.vantage.sh in github.com/tsaol/aws-gpu (data/). Earlier dates are those on which AWS announced an
// instance with its price.
constexpr double kTera = 1e12, kGiga = 1e9;
constexpr i64 kMiB = i64{1} << 20;

// Multiprocessors: NVIDIA's architecture white papers (GV100, GA100, GA102, AD104, GH100); of the A10G what
// the driver reports.
Hardware gpu(const char* name, const char* driver_name, i64 memory_mib, double memory_gb_s,
             const char* capability, i64 multiprocessors) {
  Hardware h;
  h.multiprocessors = multiprocessors;
  h.name = name;
  h.gpu = driver_name;
  h.gpus_per_node = 8;
  h.memory_bytes = memory_mib * kMiB;
  h.memory_bandwidth = memory_gb_s * kGiga;
  h.compute_capability = capability;
  return h;
}

void links(Hardware& h, double intra_gb_s, double inter_gb_s) {
  h.intra_node_bandwidth = intra_gb_s * kGiga;
  h.inter_node_bandwidth = inter_gb_s * kGiga;
}

// Only the latest price is used. Earlier ones document the cost of older results.
void price(Hardware& h, double usd, const char* source, const char* date) {
  if (h.price) h.earlier_prices.push_back(*h.price);
  h.price = Price{usd, source, date};
}

void no_price(Hardware& h) {
  h.price.reset();
  h.earlier_prices.clear();
}

// NVIDIA V100 Tensor Core GPU data sheet (Jan 2020; https://images.nvidia.com/content/technologies/volta/pdf/
// volta-v100-datasheet-update-us-1165301-r5.pdf), SXM2: fp32 15.7, tensor (fp16) 125 TFLOP/s, 900 GB/s,
// NVLink 300 GB/s both ways. No bf16, no tf32.
void add_v100(std::vector<Hardware>& v) {
  Hardware h = gpu("v100-16gb", "Tesla V100-SXM2-16GB", 16160, 900, "7.0", 80);
  h.peak_flops = {{"fp32", 15.7 * kTera}, {"fp16", 125 * kTera}};
  links(h, 150, 25.0 / 8 / 8);
  price(h, 24.48, "AWS EC2 on-demand, p3.16xlarge, us-east-1", "2017-10-25");
  price(h, 24.48, "AWS EC2 on-demand, p3.16xlarge, us-east-1", "2026-01-21");
  v.push_back(h);
  no_price(h);
  h.name = "v100-32gb";
  h.gpu = "Tesla V100-SXM2-32GB";
  h.memory_bytes = 32510 * kMiB;
  links(h, 150, 100.0 / 8 / 8);
  price(h, 31.212, "AWS EC2 on-demand, p3dn.24xlarge, us-east-1", "2018-12-07");
  price(h, 31.212, "AWS EC2 on-demand, p3dn.24xlarge, us-east-1", "2026-01-21");
  v.push_back(h);
}

// NVIDIA Titan RTX data sheet (2018) and Turing white paper (TU102): fp32 16.3, tensor (fp16) 130.5 TFLOP/s, 672 GB/s,
// PCIe 3 x16; NVLink joins two cards only.
// https://www.nvidia.com/content/dam/en-zz/Solutions/titan/documents/titan-rtx-for-creators-us-nvidia-1011126-r6-web.pdf
void add_titan(std::vector<Hardware>& v) {
  Hardware h = gpu("titan-rtx-24gb", "TITAN RTX", 24220, 672, "7.5", 72);
  h.peak_flops = {{"fp32", 16.3 * kTera}, {"fp16", 130.5 * kTera}};
  links(h, 16, 100.0 / 8 / 8);
  v.push_back(h);
}

// NVIDIA A10G data sheet (AWS, Feb 2022): fp32 35, tf32 35, bf16 and fp16 70 dense (140 sparse), 600 GB/s,
// PCIe 4 x16. NVIDIA L4 data sheet (2023): fp32 30.3; sparse tf32 120, bf16/fp16 242, fp8 485; 300 GB/s, PCIe
// 4 x16.
void add_inference_cards(std::vector<Hardware>& v) {
  Hardware a10g = gpu("a10g-24gb", "NVIDIA A10G", 23028, 600, "8.6", 80);
  a10g.peak_flops = {{"fp32", 35 * kTera}, {"tf32", 35 * kTera}, {"fp16", 70 * kTera}, {"bf16", 70 * kTera}};
  links(a10g, 32, 100.0 / 8 / 8);
  price(a10g, 16.288, "AWS EC2 on-demand, g5.48xlarge, us-east-1", "2021-11-11");
  price(a10g, 16.288, "AWS EC2 on-demand, g5.48xlarge, us-east-1", "2026-01-21");
  v.push_back(a10g);
  Hardware l4 = gpu("l4-24gb", "NVIDIA L4", 23034, 300, "8.9", 58);
  l4.peak_flops = {{"fp32", 30.3 * kTera},
                   {"tf32", 60 * kTera},
                   {"fp16", 121 * kTera},
                   {"bf16", 121 * kTera},
                   {"fp8", 242.5 * kTera}};
  links(l4, 32, 100.0 / 8 / 8);
  price(l4, 13.3504, "AWS EC2 on-demand, g6.48xlarge, us-east-1", "2024-04-04");
  price(l4, 13.3504, "AWS EC2 on-demand, g6.48xlarge, us-east-1", "2026-01-21");
  v.push_back(l4);
}

// NVIDIA A100 data sheet (Jun 2021), SXM: fp32 19.5, dense tf32 156, bf16/fp16 312; 1555 (40 GB) and 2039
// GB/s (80 GB); NVLink 600 GB/s both ways.
void add_a100(std::vector<Hardware>& v) {
  Hardware h = gpu("a100-40gb", "NVIDIA A100-SXM4-40GB", 40960, 1555, "8.0", 108);
  h.peak_flops = {
      {"fp32", 19.5 * kTera}, {"tf32", 156 * kTera}, {"fp16", 312 * kTera}, {"bf16", 312 * kTera}};
  links(h, 300, 400.0 / 8 / 8);
  price(h, 32.77, "AWS EC2 on-demand, p4d.24xlarge, us-east-1", "2020-11-02");
  price(h, 21.957642, "AWS EC2 on-demand, p4d.24xlarge, us-east-1", "2026-11-09");
  v.push_back(h);
  no_price(h);
  h.name = "a100-80gb";
  h.gpu = "NVIDIA A100-SXM4-80GB";
  h.memory_bytes = 81920 * kMiB;
  h.memory_bandwidth = 2039 * kGiga;
  // The LLMForge guide (Jan 2024) says 40.77 in words, but its own cost column comes out only with 40.97.
  price(h, 40.97, "AWS EC2 on-demand, p4de.24xlarge, us-east-1", "2022-05-24");
  price(h, 27.44705, "AWS EC2 on-demand, p4de.24xlarge, us-east-1", "2026-11-09");
  v.push_back(h);
}

// NVIDIA H100 data sheet (2023), sparse: SXM tf32 989, bf16/fp16 1979, fp8 3958, fp32 67, 3.35 TB/s, NVLink
// 900 GB/s; PCIe tf32 756, bf16/fp16 1513, fp8 3026, fp32 51, 2 TB/s, PCIe 5 128 GB/s. NVIDIA H200 data sheet
// (2024): SXM as the H100 SXM with 141 GB at 4.8 TB/s.
void add_hopper(std::vector<Hardware>& v) {
  Hardware sxm = gpu("h100-sxm-80gb", "NVIDIA H100 80GB HBM3", 81559, 3350, "9.0", 132);
  sxm.peak_flops = {{"fp32", 67 * kTera},
                    {"tf32", 494.7 * kTera},
                    {"fp16", 989.4 * kTera},
                    {"bf16", 989.4 * kTera},
                    {"fp8", 1978.9 * kTera}};
  links(sxm, 450, 3200.0 / 8 / 8);
  price(sxm, 98.32, "AWS EC2 on-demand, p5.48xlarge, us-east-1", "2023-07-26");
  price(sxm, 55.04, "AWS EC2 on-demand, p5.48xlarge, us-east-1", "2026-11-09");
  v.push_back(sxm);

  // Meta's Grand Teton, as torchtitan's benchmarks describe it (benchmarks/llama3_h100_202412_torchtitan.md): HBM2e,
  // 2.4 TB/s, 400 Gbit/s per GPU, 500 W, at which the peaks of the SXM are not quite reached.
  Hardware teton = sxm;
  teton.name = "h100-sxm-96gb", teton.gpu = "NVIDIA H100", teton.memory_bytes = 97871 * kMiB;
  teton.memory_bandwidth = 2400 * kGiga;
  no_price(teton);
  v.push_back(teton);

  Hardware pcie = gpu("h100-pcie-80gb", "NVIDIA H100 PCIe", 81559, 2000, "9.0", 114);
  pcie.peak_flops = {{"fp32", 51 * kTera},
                     {"tf32", 378 * kTera},
                     {"fp16", 756 * kTera},
                     {"bf16", 756 * kTera},
                     {"fp8", 1513 * kTera}};
  links(pcie, 64, 50);
  v.push_back(pcie);

  Hardware h200 = sxm;
  h200.name = "h200-141gb";
  h200.gpu = "NVIDIA H200";
  h200.memory_bytes = 143771 * kMiB;
  h200.memory_bandwidth = 4800 * kGiga;
  no_price(h200);
  price(h200, 63.296, "AWS EC2 on-demand, p5en.48xlarge, us-east-1", "2026-08-06");
  v.push_back(h200);
}

// NVIDIA HGX B200 data sheet (2025), 8 GPUs, sparse: tf32 18, bf16/fp16 36, fp8 72 PFLOP/s; fp32 600 TFLOP/s;
// 8 TB/s and NVLink 1.8 TB/s both ways per GPU; 180 GB each (DGX B200: 1,440 GB).
void add_blackwell(std::vector<Hardware>& v) {
  Hardware h = gpu("b200-180gb", "NVIDIA B200", 183359, 8000, "10.0", 148);
  h.peak_flops = {{"fp32", 75 * kTera},
                  {"tf32", 1125 * kTera},
                  {"fp16", 2250 * kTera},
                  {"bf16", 2250 * kTera},
                  {"fp8", 4500 * kTera}};
  links(h, 900, 50);
  price(h, 113.9328, "AWS EC2 on-demand, p6-b200.48xlarge, us-east-1", "2026-01-21");
  v.push_back(h);

  // NVIDIA HGX B300 (https://www.nvidia.com/en-us/data-center/hgx/, 2025): peaks as the HGX B200; 8 TB/s; one port of
  // 800 Gbit/s per GPU. Memory: nvidia-smi.
  Hardware b300 = h;
  b300.name = "b300-288gb", b300.gpu = "NVIDIA B300 SXM6 AC", b300.compute_capability = "10.3";
  b300.memory_bytes = 275040 * kMiB;
  links(b300, 900, 100);
  no_price(b300);
  v.push_back(b300);

  // NVIDIA GB200 NVL72 (https://www.nvidia.com/en-us/data-center/gb200-nvl72/, 2025), 72 GPUs, sparse: tf32 180, fp16 and
  // bf16 360, fp8 720 PFLOP/s; fp32 5,760 TFLOP/s; 576 TB/s. GB300 NVL72 (https://www.nvidia.com/en-us/data-center/
  // gb300-nvl72/, 2025) the same with 800 Gbit/s per GPU. A node is a tray of four; NVLink joins
  // the trays of one rack (linked_gpus). Memory: nvidia-smi.
  Hardware gb200 = h;
  gb200.name = "gb200-186gb", gb200.gpu = "NVIDIA GB200", gb200.gpus_per_node = 4,
  gb200.multiprocessors = 152;
  gb200.memory_bytes = 189471 * kMiB;
  gb200.peak_flops = {{"fp32", 80 * kTera},
                      {"tf32", 1250 * kTera},
                      {"fp16", 2500 * kTera},
                      {"bf16", 2500 * kTera},
                      {"fp8", 5000 * kTera}};
  no_price(gb200);
  v.push_back(gb200);
  Hardware gb300 = gb200;
  gb300.name = "gb300-288gb", gb300.gpu = "NVIDIA GB300", gb300.compute_capability = "10.3";
  gb300.memory_bytes = 284208 * kMiB;
  links(gb300, 900, 100);
  v.push_back(gb300);
}

// AMD Instinct MI300X data sheet (2023) and MI355X brochure (2025), dense matrix peaks; 5.3 and 8 TB/s; seven Infinity
// Fabric links of 128 and 153.6 GB/s both ways. The compute capability is the version of the graphics core (gfx942,
// gfx950). Memory: rocm-smi; of the MI355X 288 GiB less the same 16 MiB.
// https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/data-sheets/amd-instinct-mi300x-data-sheet.pdf
// https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/product-briefs/amd-instinct-mi355x-gpu-brochure.pdf
void add_instinct(std::vector<Hardware>& v) {
  Hardware mi300x = gpu("mi300x-192gb", "AMD Instinct MI300X", 196592, 5300, "9.4", 304);
  mi300x.peak_flops = {{"fp32", 163.4 * kTera},
                       {"tf32", 653.7 * kTera},
                       {"fp16", 1307.4 * kTera},
                       {"bf16", 1307.4 * kTera},
                       {"fp8", 2614.9 * kTera}};
  links(mi300x, 448, 50);
  v.push_back(mi300x);
  Hardware mi355x = gpu("mi355x-288gb", "AMD Instinct MI355X", 294896, 8000, "9.5", 256);
  mi355x.peak_flops = {
      {"fp32", 157.3 * kTera}, {"fp16", 2516.6 * kTera}, {"bf16", 2516.6 * kTera}, {"fp8", 5033.2 * kTera}};
  links(mi355x, 537.6, 50);
  v.push_back(mi355x);
}

std::vector<Hardware> build_hardware() {
  std::vector<Hardware> v;
  Hardware cpu;  // no peak: processors differ too much, so mfu stays absent; bandwidths: one core of a
                 // server, copies
  cpu.name = "cpu";
  cpu.memory_bandwidth = 10 * kGiga;
  links(cpu, 2, 1);
  v.push_back(cpu);
  add_v100(v);
  add_titan(v);
  add_inference_cards(v);
  add_a100(v);
  add_hopper(v);
  add_blackwell(v);
  add_instinct(v);
  return v;
}

}  // namespace

i64 linked_gpus(const Hardware& h) {
  const bool rack = h.name == "gb200-186gb" || h.name == "gb300-288gb";  // NVL72, cited at add_blackwell
  return rack ? 72 : h.gpus_per_node;
}

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

const Hardware* known_hardware(std::string_view name) {
  for (const Hardware& h : all_hardware())
    if (h.name == name) return &h;
  return nullptr;
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
  std::vector<std::string> names;
  for (const Hardware& h : all_hardware()) names.push_back(h.name);
  const auto close = meant_hardware(name, names);
  return fail(ErrorKind::kUnknownName, name,
              fmt::format("unknown hardware '{}'{}; known: {}", name,
                          close ? fmt::format(" (did you mean '{}'?)", *close) : "", fmt::join(names, ", ")));
}

}  // namespace sweep::shape
