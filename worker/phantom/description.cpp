#include "worker/phantom/description.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <type_traits>

namespace sweep::phantom {
namespace {

using Json = nlohmann::json;
constexpr int kMostGpus = 16;
constexpr double kMost = 1e15;             // bytes or nanoseconds: a petabyte, eleven days
constexpr std::size_t kLongestText = 200;  // cudaDeviceProp holds 255 characters

// Reads the members of one object and refuses what it does not know.
class Members {
 public:
  Members(const Json& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object_.is_object()) throw std::runtime_error(what_ + " is not a JSON object");
  }
  template <class T>
  void read(const char* name, T& into) {
    known_.insert(name);
    const auto found = object_.find(name);
    if (found == object_.end()) return;
    if (!is_of_kind<T>(*found))
      throw std::runtime_error(what_ + ": \"" + name + "\" is " + found->dump().substr(0, 80));
    into = found->get<T>();
  }
  void ignore(const char* name) { known_.insert(name); }
  void finish() const {
    for (const auto& [name, value] : object_.items())
      if (!known_.contains(name)) throw std::runtime_error(what_ + " has an unknown member \"" + name + "\"");
  }

 private:
  // Numbers are 0 or more; whole where they count, and then at most kMost.
  template <class T>
  static bool is_of_kind(const Json& value) {
    if constexpr (std::is_integral_v<T>) {
      const double most = std::min(kMost, static_cast<double>(std::numeric_limits<T>::max()));
      return value.is_number_unsigned() && static_cast<double>(value.get<std::uint64_t>()) <= most;
    } else if constexpr (std::is_same_v<T, double>) {
      return value.is_number() && value.get<double>() >= 0;
    } else if constexpr (std::is_same_v<T, std::string>) {
      return value.is_string() && value.get_ref<const std::string&>().size() <= kLongestText;
    } else {  // a list or an object of numbers
      return value.is_structured() && std::all_of(value.begin(), value.end(), [](const Json& each) {
               return each.is_number() && each.get<double>() > 0;
             });
    }
  }

  const Json& object_;
  std::string what_;
  std::set<std::string> known_;
};

void read_device(const Json& json, Description& out) {
  Device& d = out.device;
  Members m(json, "the device description");
  std::string capability = std::to_string(d.major) + "." + std::to_string(d.minor);
  m.read("hardware", d.hardware);
  m.read("name", d.name);
  m.read("gpus", out.gpus);
  m.read("memory_bytes", d.memory_bytes);
  m.read("multiprocessors", d.multiprocessors);
  m.read("compute_capability", capability);
  m.read("memory_bandwidth", d.memory_bandwidth);
  m.read("peak_flops", d.peak_flops);
  m.read("intra_node_bandwidth", d.intra_node_bandwidth);
  m.read("inter_node_bandwidth", d.inter_node_bandwidth);
  m.read("context_bytes", d.context_bytes);
  m.read("nccl_bytes", d.nccl_bytes);
  for (const char* of_the_catalogue : {"gpus_per_node", "linked_gpus", "prices", "product_reach", "source"})
    m.ignore(of_the_catalogue);
  m.finish();
  int length = 0;
  if (capability.find_first_not_of("0123456789.") != std::string::npos ||
      std::sscanf(capability.c_str(), "%2d.%1d%n", &d.major, &d.minor, &length) != 2 ||
      length != static_cast<int>(capability.size()))
    throw std::runtime_error("compute_capability is \"9.0\" or the like, not \"" + capability + "\"");
  if (d.multiprocessors < 1 || d.memory_bandwidth <= 0 || d.intra_node_bandwidth <= 0 ||
      d.inter_node_bandwidth <= 0)
    throw std::runtime_error("multiprocessors and bandwidths must be above 0");
  if (out.gpus > kMostGpus) throw std::runtime_error("a node has 0 to 16 GPUs");
}

void read_profile(const Json& json, Profile& p) {
  Members m(json, "the profile");
  m.read("launch_host_ns", p.launch_host);
  m.read("copy_host_ns", p.copy_host);
  m.read("event_host_ns", p.event_host);
  m.read("query_host_ns", p.query_host);
  m.read("sync_host_ns", p.sync_host);
  m.read("malloc_host_ns", p.malloc_host);
  m.read("nccl_host_ns", p.nccl_host);
  m.read("graph_host_ns", p.graph_host);
  m.read("kernel_floor_ns", p.kernel_floor);
  m.read("copy_latency_ns", p.copy_latency);
  m.read("bytes_per_thread", p.bytes_per_thread);
  m.read("matmul_efficiency", p.matmul_efficiency);
  m.read("attention_efficiency", p.attention_efficiency);
  m.read("pcie_bandwidth", p.pcie_bandwidth);
  m.read("intra_latency_ns", p.intra_latency);
  m.read("inter_latency_ns", p.inter_latency);
  m.read("hop_latency_ns", p.hop_latency);
  m.read("far_message_ns", p.far_message);
  m.read("all_reduce_share", p.all_reduce_share);
  m.read("other_share", p.other_share);
  m.finish();
  if (p.all_reduce_share.empty() || p.other_share.empty())
    throw std::runtime_error("all_reduce_share and other_share need at least one entry");
  if (p.matmul_efficiency <= 0 || p.attention_efficiency <= 0 || p.pcie_bandwidth <= 0)
    throw std::runtime_error("efficiencies and pcie_bandwidth must be above 0");
}

// The text itself where it is JSON, else that of the file it names.
std::string text_of(const char* variable) {
  const char* value = std::getenv(variable);
  const std::string text = value == nullptr ? "" : value;
  if (text.empty() || text == "1" || text.front() == '{') return text == "1" ? "" : text;
  return text_of_file(text);
}

int gpus_of(const std::string& text) {
  int count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0 || count > kMostGpus)
    throw std::runtime_error("SWEEP_PHANTOM_GPUS is 0 to 16, not \"" + text + "\"");
  return count;
}

Description from_environment() {
  Description out = described(text_of("SWEEP_PHANTOM"), text_of("SWEEP_PHANTOM_PROFILE"));
  if (const char* gpus = std::getenv("SWEEP_PHANTOM_GPUS")) out.gpus = gpus_of(gpus);
  const char* node = std::getenv("SWEEP_PHANTOM_NODE");
  out.node = node == nullptr ? "node0" : node;
  if (out.node.empty() || out.node.find('/') != std::string::npos || out.node.size() > 100)
    throw std::runtime_error("SWEEP_PHANTOM_NODE must be a short name without '/'");
  return out;
}

}  // namespace

Description described(const std::string& device_json, const std::string& profile_json) {
  Description out;
  if (!device_json.empty()) read_device(Json::parse(device_json), out);
  if (!profile_json.empty()) read_profile(Json::parse(profile_json), out.profile);
  return out;
}

const Description& description() {
  static const Description* read = [] {
    try {
      return new Description(from_environment());
    } catch (const std::exception& e) {
      say(std::string("SWEEP_PHANTOM or SWEEP_PHANTOM_PROFILE cannot be used: ") + e.what());
      ::_exit(2);
    }
  }();
  return *read;
}

void say(const std::string& text) {
  const std::string line = "phantom: " + text + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

void say_once(const std::string& key, const std::string& text) {
  static auto* mutex = new std::mutex;
  static auto* said = new std::set<std::string>;
  const std::lock_guard lock(*mutex);
  if (said->insert(key).second) say(text);
}

void say_lacking(const char* name) {
  say_once(name, std::string(name) + " is not answered by phantom GPUs");
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream out;
  if (!(out << file.rdbuf())) throw std::runtime_error("the file " + path + " cannot be read");
  return out.str();
}

}  // namespace sweep::phantom
