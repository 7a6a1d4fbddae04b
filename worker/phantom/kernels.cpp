#include "worker/phantom/kernels.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>

namespace sweep::phantom {
namespace {

constexpr double kTile = 128;  // rows and columns of a product that one multiprocessor works on at a time
constexpr double kCached = 128 << 20;  // bytes that a cache may hold: memory's bandwidth is no bound of them
constexpr double kLeastInner = 512;    // a part of a split inner size is at least so long

double peak(const std::string& type) {
  const auto& peaks = description().device.peak_flops;
  const std::string wider = type == "fp4" ? "fp8" : type;  // type on a GPU without products in four bits
  for (const auto& name : {type, wider, std::string("fp16"), std::string("fp32")})
    if (const auto found = peaks.find(name); found != peaks.end()) return found->second;
  return 10e12;
}

Ns nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

double traffic_seconds(double bytes) {
  return bytes / description().device.memory_bandwidth;
}

// The cost of a product by the model, and at the device's peaks.
KernelTable::Cost cost_of(const Product& p) {
  const auto& d = description();
  const double all = d.device.multiprocessors;
  const double tiles = std::ceil(p.m / kTile) * std::ceil(p.n / kTile) * p.batch;
  const double parts = std::max(1.0, std::min(std::floor(all / tiles), std::floor(p.k / kLeastInner)));
  const double waves = std::ceil(tiles * parts / all);
  const double compute =
      waves * 2 * kTile * kTile * (p.k / parts) / (peak(p.type) * d.profile.matmul_efficiency / all);
  const double bytes = traffic_of(p);
  const double sums = parts > 1 ? 2 * parts * p.batch * p.m * p.n * 4 : 0;  // fp32, written and read
  const double flops = 2 * p.batch * p.m * p.n * p.k;
  return {d.profile.kernel_floor + nanoseconds(std::max(compute, traffic_seconds(bytes + sums))),
          nanoseconds(std::max(flops / peak(p.type), traffic_seconds(bytes)))};
}

KernelWork work_of(const Product& p) {
  KernelWork out{p.batch > 1 ? "bmm" : "mm", p.type, {p.m, p.n, p.k}};
  if (p.batch > 1) out.sizes.insert(out.sizes.begin(), p.batch);
  return out;
}

Product with_sizes(Product p, const std::vector<double>& sizes) {
  const auto* last = &sizes.back();
  p.m = last[-2], p.n = last[-1], p.k = last[0];
  if (sizes.size() > 3) p.batch = sizes.front();
  return p;
}

// {heads of all sequences, length, head size}: FLOPs grow with the length's square.
KernelTime attention_time(const AttentionKernel& kernel, const Grid& grid, const void* parameters) {
  const auto& profile = description().profile;
  const AttentionSpan span = kernel.span(grid, description().device.multiprocessors, parameters);
  const KernelWork work{
      std::string(kernel.passes > 2 ? "attention_backward" : "attention") + (kernel.causal ? "_causal" : ""),
      "bf16",
      {kernel.sequences(grid), std::max(1.0, kernel.length(span)), static_cast<double>(kernel.head)}};
  const auto volume = [](const std::vector<double>& s) { return s[0] * s[1] * s[1] * s[2]; };
  const double flops_each = kernel.flops(grid, span) / volume(work.sizes);
  return kernel_table().time(work, [&](const std::vector<double>& sizes) {
    const double seconds = flops_each * volume(sizes) / peak("bf16");
    return KernelTable::Cost{
        std::max(profile.kernel_floor, nanoseconds(seconds / profile.attention_efficiency)),
        nanoseconds(seconds)};
  });
}

}  // namespace

KernelModel::KernelModel(const std::string& mangled)
    : attention_(AttentionKernel::named(mangled)),
      grouped_(grouped_kernel(mangled.c_str())),
      groups_fp8_(groups_fp8(mangled.c_str())),
      list_(ListKernel::named(mangled)) {}

KernelTime KernelModel::time(const Grid& grid, const Grid& block, void* const* arguments) const {
  return attention_.passes == 0
             ? kernel_time(grid.count() * block.count())
             : attention_time(attention_, grid, arguments == nullptr ? nullptr : arguments[0]);
}

Product KernelModel::product(void* const* arguments) const {
  const GroupedSizes all = grouped_sizes(arguments);
  return {all.m, all.n, all.k, 1, groups_fp8_ ? 1.0 : 2.0, 2, groups_fp8_ ? "fp8" : "bf16"};
}

double traffic_of(const Product& p) {
  return p.batch * ((p.m * p.k + p.k * p.n) * p.bytes + p.m * p.n * p.result_bytes);
}

KernelTime product_time(const Product& product) {
  return kernel_table().time(work_of(product), [&](const std::vector<double>& sizes) {
    return cost_of(with_sizes(product, sizes));
  });
}

KernelTime kernel_time(double threads) {
  const KernelTime by_bytes = kernel_time_of_bytes(threads * description().profile.bytes_per_thread);
  return {by_bytes.lasts, Source::kModel};
}

KernelTime kernel_time_of_bytes(double bytes) {
  return kernel_table().time({"memory", "", {std::max(1.0, bytes)}}, [](const std::vector<double>& sizes) {
    const Ns traffic = nanoseconds(traffic_seconds(sizes[0]));
    return KernelTable::Cost{std::max(description().profile.kernel_floor, traffic),
                             sizes[0] > kCached ? traffic : 0};
  });
}

const KernelTable& kernel_table() {
  static const KernelTable* read = [] {
    const char* path = std::getenv("SWEEP_PHANTOM_KERNELS");
    if (path == nullptr || *path == 0) return new KernelTable;
    try {
      return new KernelTable(KernelTable::read(text_of_file(path), description().device.hardware));
    } catch (const std::exception& e) {
      say(std::string("the kernel table ") + path + " (SWEEP_PHANTOM_KERNELS) cannot be used: " + e.what());
      ::_exit(2);
    }
  }();
  return *read;
}

}  // namespace sweep::phantom
