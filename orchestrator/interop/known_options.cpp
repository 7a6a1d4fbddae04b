#include "orchestrator/interop/known_options.h"

#include <cctype>
#include <map>

namespace sweep::interop {
namespace {

using Names = std::map<std::string_view, std::string_view>;

const Names kAxes{
    {"batch", "micro_batch_size"},
    {"batch_size", "micro_batch_size"},
    {"bs", "micro_batch_size"},
    {"mbs", "micro_batch_size"},
    {"micro_batch", "micro_batch_size"},
    {"micro_batch_size", "micro_batch_size"},
    {"per_device_train_batch_size", "micro_batch_size"},
    {"local_batch_size", "micro_batch_size"},
    {"grad_accum", "grad_accum"},
    {"gradient_accumulation_steps", "grad_accum"},
    {"accumulate_grad_batches", "grad_accum"},
    {"accumulation_steps", "grad_accum"},
    {"seq_len", "seq_len"},
    {"seq_length", "seq_len"},
    {"sequence_length", "seq_len"},
    {"max_seq_length", "seq_len"},
    {"max_seq_len", "seq_len"},
    {"block_size", "seq_len"},
    {"context_length", "seq_len"},
    {"zero_stage", "zero"},
    {"max_steps", "total_steps"},
    {"steps", "total_steps"},
    {"num_steps", "total_steps"},
    {"total_steps", "total_steps"},
    {"train_iters", "total_steps"},
    {"max_iters", "total_steps"},
    {"iterations", "total_steps"},
};

const Names kRankNames{
    {"nproc_per_node", "gpus_per_node"},
    {"num_gpus", "gpus_per_node"},
    {"gpus_per_node", "gpus_per_node"},
    {"num_processes", "world"},
    {"nnodes", "nodes"},
    {"num_nodes", "nodes"},
    {"num_machines", "nodes"},
    {"node_rank", "node"},
    {"machine_rank", "node"},
    {"master_addr", "master_addr"},
    {"main_process_ip", "master_addr"},
    {"master_port", "master_port"},
    {"main_process_port", "master_port"},
};

std::optional<std::string_view> found_in(const Names& names, std::string_view option) {
  const auto name = axis_name_from(option);
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::string axis_name_from(std::string_view option) {
  std::string out;
  for (const char c : option) {
    const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool fits = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (fits)
      out += lower;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (out.empty() || out.front() < 'a') out.insert(0, "option_");
  return out.substr(0, 60);
}

std::optional<std::string_view> axis_of_option(std::string_view option) {
  return found_in(kAxes, option);
}

std::optional<std::string_view> rank_name_of_option(std::string_view option) {
  return found_in(kRankNames, option);
}

}  // namespace sweep::interop
