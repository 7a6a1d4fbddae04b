// nvrtc_test TORCH_LIB TABLE [--write]: NVRTC compiles the fused kernels for every architecture and type, without a
// GPU; registers, spills and stack of each kernel are those of the table, or fewer. Ends with 77 where the
// wheel has no NVRTC.
#include "bench_kernels/comm/cuda/nvrtc.h"

#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>

namespace {

// "sm_90 Bf16 rope_packed" to "registers stack spills".
using Table = std::map<std::string, std::string>;

Table measured(const std::string& torch_lib) {
  static const std::regex kKernel(
      "entry function '([a-z_]+)'[^]*?([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores[^]*?Used "
      "([0-9]+) registers");
  Table table;
  for (const int architecture : {80, 90, 100, 120}) {
    for (const char* type : {"Bf16", "Fp16", "float", "double"}) {
      const std::string log = sweep::nvrtc::compile(torch_lib, type, architecture).log;
      for (std::sregex_iterator at(log.begin(), log.end(), kKernel), end; at != end; ++at)
        table["sm_" + std::to_string(architecture) + " " + type + " " + (*at)[1].str()] =
            (*at)[4].str() + " " + (*at)[2].str() + " " + (*at)[3].str();
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
