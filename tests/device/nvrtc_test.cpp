// nvrtc_test TORCH_LIB TABLE [--all|--write]: NVRTC compiles the fused kernels without a GPU; each has no spill and no
// stack, no more registers, shared memory, loads and stores than the table says, and none that is narrower. Without an
// option it compiles for each architecture one type, so that every type of a trainer has one; with one, all pairs. Ends
// with 77 where the wheel has no NVRTC.
#include "bench_kernels/comm/cuda/nvrtc.h"

#include <algorithm>
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

// Instructions that access the device's memory, and the bytes of the narrowest and of the widest.
struct Accesses {
  int count = 0, least = 0, most = 0;
  bool operator==(const Accesses&) const = default;
  bool worse_than(const Accesses& other) const {
    return count > other.count || least < other.least || most < other.most;
  }
};
// The registers and shared memory of a kernel, and how it moves data in the device's memory.
struct Use {
  int registers = 0, shared = 0;  // static shared memory, bytes
  Accesses loads, stores;
  bool operator==(const Use&) const = default;
  bool worse_than(const Use& other) const {
    return registers > other.registers || shared > other.shared || loads.worse_than(other.loads) ||
           stores.worse_than(other.stores);
  }
};
// As it stands in the table: registers, shared memory, loads, stores, such as 56,0,6:16-16,2:16-16.
std::string word_of(const Use& use) {
  std::ostringstream out;
  out << use.registers << ',' << use.shared;
  for (const Accesses& each : {use.loads, use.stores})
    out << ',' << each.count << ':' << each.least << '-' << each.most;
  return out.str();
}
Use use_of(const std::string& word) {
  Use use;
  std::istringstream in(word);
  char mark = 0;
  in >> use.registers >> mark >> use.shared;
  for (Accesses* each : {&use.loads, &use.stores})
    in >> mark >> each->count >> mark >> each->least >> mark >> each->most;
  if (!in) throw std::invalid_argument("no entry of the table: " + word);
  return use;
}

// Kernel ("rope_packed") and column ("sm_90_Bf16") to what it uses.
using Table = std::map<std::pair<std::string, std::string>, Use>;

std::string column_of(int architecture, const std::string& type) {
  return "sm_" + std::to_string(architecture) + "_" + type;
}

// Adds the loads and stores of each entry, such as ld.global.nc.v4.u32. What names no memory may be the device's.
void add_accesses(const std::string& ptx, const std::string& column, Table& table) {
  static const std::regex kAccess(
      "(ld|st)(?![a-zA-Z0-9_.:]*\\.(?:param|shared|local|const))[a-zA-Z0-9_.:]*?(?:\\.v([0-9]))?\\.[a-z]+([0-"
      "9]+)");
  std::istringstream words(ptx);
  Use* use = nullptr;
  std::smatch access;
  for (std::string word; words >> word;) {
    if (word == ".entry" && words >> word) use = &table[{word.substr(0, word.find('(')), column}];
    if (use == nullptr || !(word.starts_with("ld.") || word.starts_with("st."))) continue;
    if (!std::regex_match(word, access, kAccess)) continue;
    const int bytes = std::stoi(access[3]) / 8 * (access[2].matched ? std::stoi(access[2]) : 1);
    Accesses& all = access[1] == "ld" ? use->loads : use->stores;
    all.least = all.count++ == 0 ? bytes : std::min(all.least, bytes);
    all.most = std::max(all.most, bytes);
  }
}

// Adds what the compiler says of each entry; `wrong` counts the kernels that keep values in memory.
void add(const sweep::nvrtc::Compiled& compiled, const std::string& column, Table& table, int& wrong) {
  static const std::regex kKernel(
      "entry function '([a-z_]+)'[^]*?([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores[^]*?Used "
      "([0-9]+) registers(?:.*?, ([0-9]+) bytes smem)?");
  const std::string& log = compiled.log;
  for (std::sregex_iterator found(log.begin(), log.end(), kKernel), end; found != end; ++found) {
    Use& use = table[{(*found)[1], column}];
    use.registers = std::stoi((*found)[4]);
    if ((*found)[5].matched) use.shared = std::stoi((*found)[5]);
    if ((*found)[2] != "0" || (*found)[3] != "0")
      ++wrong, std::cerr << (*found)[1] << ' ' << column << ": stack " << (*found)[2] << ", spilled "
                         << (*found)[3] << '\n';
  }
  add_accesses(compiled.ptx, column, table);
}

// The pairs that are compiled without --all: bf16 for two architectures, as most trainers have it.
const std::map<int, std::string> kSamples = {{80, "Fp16"}, {90, "Bf16"}, {100, "float"}, {120, "Bf16"}};

// All kernels of a type at once, which takes half as long as one by one.
Table measured(const std::string& torch_lib, bool all, int& wrong) {
  Table table;
  for (const int architecture : kArchitectures)
    for (const char* type : kTypes)
      if (all || kSamples.at(architecture) == type)
        add(sweep::nvrtc::compile(torch_lib, {"", false, type}, architecture), column_of(architecture, type),
            table, wrong);
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
    add(sweep::nvrtc::compile(torch_lib, kernel, architecture), column_of(architecture, type), alone, wrong);
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
        table[{kernel, columns.at(i)}] = use_of(word);
  }
  return table;
}

void write(const char* path, const Table& table) {
  std::ofstream file(path);
  std::string row = "kernel";
  file << row;
  for (const auto& [key, use] : table)
    if (key.first == table.begin()->first.first) file << ' ' << key.second;
  for (const auto& [key, use] : table) {
    if (key.first != row) file << '\n' << (row = key.first);
    file << ' ' << word_of(use);
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
  const std::size_t columns = option.empty() ? kSamples.size() : 16;
  if (now.size() * 16 != known.size() * columns) ++wrong;
  for (const auto& [key, use] : now) {
    const auto found = known.find(key);
    if (found == known.end() || use.worse_than(found->second))
      ++wrong, std::cerr << key.first << ' ' << key.second << " has " << word_of(use) << ", the table "
                         << (found == known.end() ? "none" : word_of(found->second)) << '\n';
  }
  std::cout << now.size() << " kernels compared, " << wrong << " wrong\n";
  return wrong == 0 ? 0 : 1;
} catch (const std::runtime_error& e) {
  std::cerr << e.what() << '\n';
  return 77;
}
