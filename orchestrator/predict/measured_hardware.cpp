#include "orchestrator/predict/measured_hardware.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace sweep::predict {
namespace {

// The costs by number of nodes, each of the largest group there.
std::map<i64, const shape::LinkCost*> by_nodes(const shape::HardwareProfile& p, std::string_view kind) {
  std::map<i64, const shape::LinkCost*> out;
  for (const auto& link : p.links) {
    if (link.kind != kind || !std::isfinite(link.bandwidth)) continue;
    const auto*& kept = out[link.nodes];
    if (kept == nullptr || link.ranks > kept->ranks) kept = &link;
  }
  return out;
}

}  // namespace

void use_measured(const shape::HardwareProfile& p, shape::Hardware& h, TrainerProfile& trainer) {
  if (p.copy_bandwidth > 0) h.memory_bandwidth = p.copy_bandwidth;
  for (const auto& product : p.products)
    if (std::isfinite(product.flops)) h.peak_flops.emplace(product.precision, product.flops);
  const auto gather = by_nodes(p, "all_gather"), reduce = by_nodes(p, "all_reduce");
  LinkTable links;
  for (const auto& [nodes, link] : gather) {
    const double ranks_of_a_node = static_cast<double>(std::max<i64>(1, link->ranks / nodes));
    if (nodes == 1)
      h.intra_node_bandwidth = link->bandwidth;
    else
      h.inter_node_bandwidth = link->bandwidth / ranks_of_a_node;  // each GPU's part of it (ring_bandwidth)
    const auto same = reduce.find(nodes);
    if (same == reduce.end()) continue;
    links.nodes.push_back(static_cast<double>(nodes));
    links.all_gather.push_back(link->bandwidth);
    links.all_reduce.push_back(same->second->bandwidth);
  }
  if (links.nodes.empty()) return;
  const std::string date = p.date.empty() ? "unknown" : p.date;
  trainer.move_to(h.name, date);
  trainer.links = std::move(links);
  trainer.set_origin({{"links"}, "measured by `sweep calibrate`", "", p.hosts, date});
}

}  // namespace sweep::predict
