// Description: what a phantom GPU is said to be, and what its work is modelled to cost. Read once per process
// from the environment (docs/phantom.md); the defaults are an H100 SXM 80 GB. Times in nanoseconds, sizes in
// bytes, rates per second.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sweep::phantom {

using Ns = std::int64_t;

struct Device {
  std::string hardware = "h100-sxm-80gb";  // the catalogue's name; rows of a kernel table are of it
  std::string name = "NVIDIA H100 80GB HBM3";
  std::uint64_t memory_bytes = 81559ull << 20;  // nvidia-smi memory.total
  int multiprocessors = 132;
  int major = 9, minor = 0;
  double memory_bandwidth = 3.35e12;
  std::map<std::string, double> peak_flops = {
      {"fp32", 67e12}, {"tf32", 494.7e12}, {"fp16", 989.4e12}, {"bf16", 989.4e12}, {"fp8", 1978.9e12}};
  double intra_node_bandwidth = 450e9, inter_node_bandwidth = 50e9;  // one direction of one GPU
  std::uint64_t context_bytes = 500ull << 20;                        // held by each process that uses it
  std::uint64_t nccl_bytes = 160ull << 20;  // held by a communicator from its first operation on
};

// The model's constants. What each means: docs/phantom.md, "Time".
struct Profile {
  Ns launch_host = 4000, copy_host = 4000, event_host = 800, query_host = 800, sync_host = 4000;
  Ns malloc_host = 200000, nccl_host = 12000, graph_host = 8000;
  Ns kernel_floor = 2000, copy_latency = 1500;
  double bytes_per_thread = 32;
  double matmul_efficiency = 0.75, attention_efficiency = 0.55;
  double pcie_bandwidth = 50e9;
  Ns intra_latency = 8000, inter_latency = 20000, hop_latency = 1000;
  // Of each message between nodes, beside the latency.
  Ns far_message = 0;
  // Share of the link that a collective reaches, by nodes (1, 2, 4, ...); measured on H100 nodes at 256 MB. How it falls over
  // more nodes is a cluster's own.
  std::vector<double> all_reduce_share = {0.969, 0.904};
  std::vector<double> other_share = {0.555, 0.458};
};

struct Description {
  Device device;
  Profile profile;
  int gpus = 1;      // number on this node
  std::string node;  // names the node's shared file; ranks of one node name the same
};

// Reads SWEEP_PHANTOM, SWEEP_PHANTOM_GPUS, SWEEP_PHANTOM_NODE and SWEEP_PHANTOM_PROFILE. A description that
// cannot be read ends the process (exit 2) with the reason on stderr: it must not pass for another device.
const Description& description();

// The default, changed by a JSON text. Throws std::exception with the reason. For tests and description().
Description described(const std::string& device_json, const std::string& profile_json);

// One line on stderr, marked as the phantom's.
void say(const std::string& text);
// The same, once per key and process.
void say_once(const std::string& key, const std::string& text);
// "NAME is not answered: ...", once per name and process.
void say_lacking(const char* name);
// Content of the file that an environment variable names. Throws std::runtime_error: it cannot be read.
std::string text_of_file(const std::string& path);

}  // namespace sweep::phantom
