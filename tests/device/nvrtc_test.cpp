// nvrtc_test TORCH_LIB TABLE [--all|--write]: NVRTC compiles the fused kernels without a GPU; registers, spills and stack
// of each kernel are those of the table, or fewer. Without an option it compiles for each architecture one type and for
// sm_90 every type, which takes a third of the time. Ends with 77 where the wheel has no NVRTC.
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

#define SWEEP_KERNEL_NAME(name, Args, body) #name,
constexpr const char* kNames[] = {SWEEP_DEVICE_KERNELS(SWEEP_KERNEL_NAME)};
#undef SWEEP_KERNEL_NAME
constexpr int kArchitectures[] = {80, 90, 100, 120};
constexpr const char* kTypes[] = {"Bf16", "Fp16", "float", "double"};

// Kernel ("rope_packed") and column ("sm_90_Bf16") to registers.
using Table = std::map<std::pair<std::string, std::string>, int>;

std::string column_of(int architecture, const std::string& type) {
  return "sm_" + std::to_string(architecture) + "_" + type;
}

// Adds what the compiler says of each entry; `wrong` counts the kernels that keep values in memory.
void add(const std::string& log, const std::string& column, Table& table, int& wrong) {
  static const std::regex kKernel(
      "entry function '([a-z_]+)'[^]*?([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores[^]*?Used "
      "([0-9]+) registers");
  for (std::sregex_iterator found(log.begin(), log.end(), kKernel), end; found != end; ++found) {
    table[{(*found)[1], column}] = std::stoi((*found)[4]);
    if ((*found)[2] != "0" || (*found)[3] != "0")
      ++wrong, std::cerr << (*found)[1] << ' ' << column << ": stack " << (*found)[2] << ", spilled "
                         << (*found)[3] << '\n';
  }
}

// Whether this pair is compiled without --all.
bool is_sample(int architecture, std::string_view type) {
  return architecture == 90 || type == kTypes[0];
}

// All kernels of a type at once, which takes half as long as one by one.
Table measured(const std::string& torch_lib, bool all, int& wrong) {
  Table table;
  for (const int architecture : kArchitectures)
    for (const char* type : kTypes)
      if (all || is_sample(architecture, type))
        add(sweep::nvrtc::compile(torch_lib, {"", false, type}, architecture).log,
            column_of(architecture, type), table, wrong);
  return table;
}

// Each kernel alone, as a step asks for it, for one architecture and type: it is the same code. Only those whose pair was
// compiled together.
void compare_alone(const std::string& torch_lib, const Table& together, int& wrong) {
  std::size_t n = 0;
  for (const char* name : kNames) {
    const int architecture = kArchitectures[n % 4];
    const char* type = kTypes[n / 4 % 4];
    const sweep::nvrtc::Kernel kernel{name, n++ % 2 == 0, type};
    if (!together.contains({kernel.entry(), column_of(architecture, type)})) continue;
    Table alone;
    add(sweep::nvrtc::compile(torch_lib, kernel, architecture).log, column_of(architecture, type), alone,
        wrong);
    const auto found = together.find({kernel.entry(), column_of(architecture, type)});
    if (alone.size() != 1 || found == together.end() || *alone.begin() != *found)
      ++wrong, std::cerr << kernel.entry() << " alone for " << architecture << " and " << type
                         << " is not what it is among all\n";
  }
}

// The first line has the columns, every other line a kernel.
Table read(const char* path) {
  Table table;
  std::ifstream file(path);
  std::vector<std::string> columns;
  for (std::string line, kernel, word; std::getline(file, line);) {
    std::istringstream words(line);
    words >> kernel;
    for (std::size_t i = 0; words >> word; ++i)
      if (kernel == "kernel")
        columns.push_back(word);
      else
        table[{kernel, columns.at(i)}] = std::stoi(word);
  }
  return table;
}

void write(const char* path, const Table& table) {
  std::ofstream file(path);
  std::string row = "kernel";
  file << row;
  for (const auto& [key, registers] : table)
    if (key.first == table.begin()->first.first) file << ' ' << key.second;
  for (const auto& [key, registers] : table) {
    if (key.first != row) file << '\n' << (row = key.first);
    file << ' ' << registers;
  }
  file << '\n';
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  int wrong = 0;
  const std::string option = argc > 3 ? argv[3] : "";
  const Table now = measured(argv[1], !option.empty(), wrong);
  if (option == "--write") {
    write(argv[2], now);
    return 0;
  }
  compare_alone(argv[1], now, wrong);
  const Table known = read(argv[2]);
  // Every kernel of the table, in the columns that were compiled.
  const std::size_t columns = option.empty() ? 7 : 16;
  if (now.size() * 16 != known.size() * columns) ++wrong;
  for (const auto& [key, registers] : now) {
    const auto found = known.find(key);
    if (found == known.end() || registers > found->second)
      ++wrong, std::cerr << key.first << ' ' << key.second << " has " << registers << " registers, the table "
                         << (found == known.end() ? "none" : std::to_string(found->second)) << '\n';
  }
  std::cout << now.size() << " kernels compared, " << wrong << " wrong\n";
  return wrong == 0 ? 0 : 1;
} catch (const std::runtime_error& e) {
  std::cerr << e.what() << '\n';
  return 77;
}
