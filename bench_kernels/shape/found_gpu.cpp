#include "bench_kernels/shape/found_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "bench_kernels/shape/mixed_hardware.h"

namespace sweep::shape {
namespace {

// "13.0" -> {13, 0}; unreadable parts are 0.
std::pair<int, int> version(const std::string& dotted) {
  const auto dot = dotted.find('.');
  return {std::atoi(dotted.c_str()), dot == std::string::npos ? 0 : std::atoi(dotted.c_str() + dot + 1)};
}

// Drivers keep a few per cent, and catalogues round; products of one architecture differ by more than that.
constexpr double kMemoryTolerance = 0.12;

// Another hardware of the catalogue whose driver calls it so: products of one architecture and memory differ
// in speed.
const Hardware* known_as(const Hardware& declared, const std::string& name) {
  if (name.empty()) return nullptr;
  const auto all = all_hardware();
  const auto found = std::ranges::find(all, name, &Hardware::gpu);
  return found == all.end() || found->gpu == declared.gpu ? nullptr : &*found;
}

}  // namespace

bool has_code_for(const std::vector<std::string>& archs, const std::string& compute_capability) {
  const auto gpu = version(compute_capability);
  return std::any_of(archs.begin(), archs.end(), [&](const std::string& arch) {
    const auto code = version(arch);
    return code.first == gpu.first && code.second <= gpu.second;
  });
}

bool runs_flash(const std::string& hardware) {
  constexpr int kAmpere = 8;
  const Hardware* known = known_hardware(hardware);
  return !known || known->compute_capability.empty() || version(known->compute_capability).first >= kAmpere;
}

namespace {

constexpr std::pair<int, int> kOldest{7, 5};  // the oldest compute capability of CUDA 13

bool older_than_cuda(const Hardware& h) {
  return !h.compute_capability.empty() && version(h.compute_capability) < kOldest;
}

}  // namespace

bool runs_fused(const std::string& hardware) {
  const Hardware* known = known_hardware(hardware);
  return !known || !older_than_cuda(*known);
}

std::optional<std::string> not_run_by_wheels(const Hardware& h) {
  if (h.gpu.starts_with("AMD"))
    return fmt::format("{} cannot be run: there is no build of the step for ROCm; plans and rehearsals work",
                       h.name);
  if (!older_than_cuda(h)) return std::nullopt;
  return fmt::format(
      "{} has compute capability {}, for which PyTorch's wheels with CUDA 13 have no code (7.5 and newer): a "
      "PyTorch built for it runs there; plans and rehearsals work",
      h.name, h.compute_capability);
}

bool runs_grouped(const std::string& hardware) {
  const Hardware* known = known_hardware(hardware);
  return known && (known->compute_capability == "9.0" || known->compute_capability.starts_with("10."));
}

namespace {

// The fault of a GPU that is none of a mix's kinds; nullopt: it is one of them.
std::optional<std::string> none_of_the_kinds(const Hardware& mix, const FoundGpu& found) {
  for (const std::string& kind : kinds_of(mix.name))
    if (!not_the_declared(*known_hardware(kind), found)) return std::nullopt;
  return fmt::format(
      "{} is declared; a {} is there, which is none of them: name the hardware it is (`sweep hardware`)",
      mix.name, found.name);
}

}  // namespace

std::optional<std::string> not_the_declared(const Hardware& declared, const FoundGpu& found) {
  if (is_mixed(declared.name)) return none_of_the_kinds(declared, found);
  const bool other_kind = !declared.compute_capability.empty() && !found.compute_capability.empty() &&
                          declared.compute_capability != found.compute_capability;
  if (other_kind)
    return fmt::format(
        "{} is declared, which has compute capability {}; a {} is there, with {}: name the hardware it is "
        "(`sweep hardware`)",
        declared.name, declared.compute_capability, found.name, found.compute_capability);
  if (const Hardware* other = known_as(declared, found.name))
    return fmt::format("{} is declared; a {} is there, which is {}: name that in the grid", declared.name,
                       found.name, other->name);
  if (!declared.memory_bytes || !found.memory_bytes) return std::nullopt;
  constexpr double kGib = 1u << 30;
  const double wanted = static_cast<double>(*declared.memory_bytes) / kGib,
               has = static_cast<double>(*found.memory_bytes) / kGib;
  if (has >= wanted * (1 - kMemoryTolerance) && has <= wanted * (1 + kMemoryTolerance)) return std::nullopt;
  return fmt::format(
      "{} is declared, which has {:.0f} GiB of memory; a {} is there, with {:.0f} GiB: name the hardware it "
      "is "
      "(`sweep hardware`)",
      declared.name, wanted, found.name, has);
}

}  // namespace sweep::shape
