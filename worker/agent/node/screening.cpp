#include "worker/agent/node/screening.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schema/codec.h"

namespace sweep::agent {
namespace {

constexpr double kSlowNode = 0.7, kSlowLinks = 0.5;

// The upper median if the number is even: of two nodes the faster sets the measure.
double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void keep_smaller(double& kept, double value) {
  if (value > 0 && (kept == 0 || value < kept)) kept = value;
}

void add_links(NodeScreen& screen, i64 me, const ScreenFindings& said, const std::vector<i64>& nodes,
               i64 ranks_per_node) {
  for (const auto& [from, speed] : said.links) {
    if (!std::isfinite(speed) || from < 0 || from / ranks_per_node >= static_cast<i64>(nodes.size()))
      continue;
    const i64 other = nodes[static_cast<std::size_t>(from / ranks_per_node)];
    if (other != me) screen.links.emplace_back(other, speed);
  }
}

// Every link counts for both of its ends.
double link_speed(const std::map<i64, NodeScreen>& all, i64 node) {
  std::vector<double> speeds;
  for (const auto& [me, screen] : all)
    for (const auto& [other, speed] : screen.links)
      if (me == node || other == node) speeds.push_back(speed);
  return median(std::move(speeds));
}

void say(std::string& slow, const std::string& words) {
  slow += (slow.empty() ? "" : "; ") + words;
}

void compare(std::string& slow, const char* what, const char* unit, double mine, double usual, double share) {
  if (mine > 0 && mine < share * usual)
    say(slow, fmt::format("{} {:.3g} {} where the median node has {:.3g}", what, mine, unit, usual));
}

void judge_health(std::string& slow, const NodeFacts& facts) {
  if (facts.xids.value_or(0) > 0)
    say(slow, fmt::format("{} Xid errors of its GPUs in the kernel's log", *facts.xids));
  if (!facts.gpus) return;
  for (std::size_t i = 0; i < facts.gpus->size(); ++i)
    if (const i64 errors = (*facts.gpus)[i].ecc_uncorrected.value_or(0); errors > 0)
      say(slow, fmt::format("{} uncorrected memory errors on GPU {}", errors, i));
}

}  // namespace

Attempt screen_attempt(i64 nodes, i64 gpus_per_node, bool zygote) {
  Attempt attempt;
  attempt.id = kScreenAttempt;
  Trial& trial = attempt.trial;
  trial.workload = Workload::kScreen;
  trial.hardware = gpus_per_node > 0 ? "gpu" : "cpu";
  trial.nodes = nodes;
  trial.gpus_per_node = std::max<i64>(1, gpus_per_node);
  trial.dp = trial.global_batch_size = trial.nodes * trial.gpus_per_node;
  trial.spec.layers = 1, trial.spec.hidden_size = 16,
  trial.spec.heads = trial.spec.kv_heads = 2;  // nothing trains
  trial.spec.head_dim = 8, trial.spec.intermediate_size = 32, trial.spec.vocab_size = 32, trial.seq_len = 8;
  attempt.measure = {0, 1, 1};
  attempt.deadlines = {120, 60, 60, 180, 3};
  attempt.start = zygote ? RankStart::kZygote : RankStart::kExec;
  return attempt;
}

std::map<i64, NodeScreen> judge_screen(const std::map<i64, RankRecord>& records,
                                       const std::vector<i64>& nodes, const std::map<i64, NodeFacts>& facts) {
  std::map<i64, NodeScreen> all;
  if (nodes.empty() || records.empty()) return all;
  const i64 world = std::max<i64>(records.rbegin()->first + 1, static_cast<i64>(nodes.size()));
  const i64 each = std::max<i64>(1, world / static_cast<i64>(nodes.size()));
  for (const auto& [rank, record] : records) {
    const auto& said = record.effective.screen;
    if (!said || rank < 0 || rank / each >= static_cast<i64>(nodes.size())) continue;
    const i64 node = nodes[static_cast<std::size_t>(rank / each)];
    keep_smaller(all[node].matmul_gflops, said->matmul_gflops);
    keep_smaller(all[node].memory_gb_s, said->memory_gb_s);
    add_links(all[node], node, *said, nodes, each);
  }
  std::vector<double> matmul, memory, links;
  for (const auto& [node, screen] : all) {
    matmul.push_back(screen.matmul_gflops), memory.push_back(screen.memory_gb_s);
    links.push_back(link_speed(all, node));
  }
  for (auto& [node, screen] : all) {
    compare(screen.slow, "matmul", "GFLOP/s", screen.matmul_gflops, median(matmul), kSlowNode);
    compare(screen.slow, "memory", "GB/s", screen.memory_gb_s, median(memory), kSlowNode);
    compare(screen.slow, "transport", "GB/s", link_speed(all, node), median(links), kSlowLinks);
    if (const auto known = facts.find(node); known != facts.end()) judge_health(screen.slow, known->second);
  }
  return all;
}

}  // namespace sweep::agent
