// nvrtc_test TORCH_LIB TABLE [--write]: NVRTC compiles the fused kernels for every architecture and type, without a
// GPU; registers, spills and stack of each kernel are those of the table, or fewer. Ends with 77 where the
// wheel has no NVRTC.
#include "bench_kernels/comm/cuda/nvrtc.h"

#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <vector>

#include "tests/support/cuda_shim.h"
// The list of kernels comes after the words that they are written in.
#include "bench_kernels/kernels/device/kernels.h"

namespace {

std::vector<sweep::nvrtc::Kernel> all_kernels() {
  std::vector<sweep::nvrtc::Kernel> all;
#define SWEEP_KERNEL_FORMS(name, Args, body)                   \
  for (const char* type : {"Bf16", "Fp16", "float", "double"}) \
    for (const bool packed : {false, true}) all.push_back({#name, packed, type});
  SWEEP_DEVICE_KERNELS(SWEEP_KERNEL_FORMS)
#undef SWEEP_KERNEL_FORMS
  return all;
}

// "sm_90 Bf16 rope_packed" to "registers stack spills".
using Table = std::map<std::string, std::string>;

Table measured(const std::string& torch_lib) {
  static const std::regex kKernel(
      "entry function '([a-z_]+)'[^]*?([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores[^]*?Used "
      "([0-9]+) registers");
  Table table;
  for (const int architecture : {80, 90, 100, 120}) {
    for (const sweep::nvrtc::Kernel& kernel : all_kernels()) {
      const std::string log = sweep::nvrtc::compile(torch_lib, kernel, architecture).log;
      std::smatch found;
      if (std::regex_search(log, found, kKernel))
        table["sm_" + std::to_string(architecture) + " " + kernel.type + " " + found[1].str()] =
            found[4].str() + " " + found[2].str() + " " + found[3].str();
    }
  }
  return table;
}

Table read(const char* path) {
  Table table;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string architecture, type, kernel, registers, stack, spills;
    words >> architecture >> type >> kernel >> registers >> stack >> spills;
    if (!spills.empty())
      table[architecture + " " + type + " " + kernel] = registers + " " + stack + " " + spills;
  }
  return table;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const Table now = measured(argv[1]);
  if (argc > 3) {
    std::ofstream file(argv[2]);
    for (const auto& [kernel, figures] : now) file << kernel << ' ' << figures << '\n';
    return 0;
  }
  const Table known = read(argv[2]);
  int wrong = now.size() == known.size() ? 0 : 1;
  for (const auto& [kernel, figures] : now) {
    const auto found = known.find(kernel);
    if (figures.substr(figures.find(' ')) != " 0 0")
      ++wrong,
          std::cerr << kernel << " keeps values in memory (registers, stack, spilled): " << figures << '\n';
    if (found == known.end() || std::stoi(figures) > std::stoi(found->second))
      ++wrong, std::cerr << kernel << " has " << figures << ", the table "
                         << (found == known.end() ? "nothing" : found->second) << '\n';
  }
  std::cout << now.size() << " kernels compared, " << wrong << " wrong\n";
  return wrong == 0 ? 0 : 1;
} catch (const std::runtime_error& e) {
  std::cerr << e.what() << '\n';
  return 77;
}
