#include "orchestrator/run/allocations.h"

#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/run/recovery.h"

namespace sweep::run {

Expected<void> Allocations::adopt_earlier() {
  const Settings& settings = context_.settings;
  auto adopted =
      recover(context_.store, settings.sweep, context_.observer, {&context_.launcher, settings.launcher});
  if (!adopted) return tl::unexpected(adopted.error());
  for (HeldAllocation& each : *adopted) {
    const auto id = each.request.id;
    // Trials ran in it already, so its nodes were checked then.
    each.apply(AllocationEvent::kNodesKnown);
    held_[id] = std::move(each);
  }
  SWEEP_GET(const auto held, context_.store.gpu_seconds(settings.sweep));
  ended_gpu_s_ = held.ended;
  return {};
}

launch::AllocationRequest Allocations::request_for(const store::AllocationRow& row, const Wanted& wanted,
                                                   std::vector<std::string> avoid) const {
  const Settings& settings = context_.settings;
  launch::AllocationRequest request;
  request.id = row.id, request.spool = row.spool;
  request.incarnation = row.incarnation, request.outbox_offset = row.offset;
  request.nodes = wanted.nodes, request.slots = settings.slots;
  if (!settings.allocate_per_shape) return request;
  request.hardware = wanted.hardware;
  request.ranks_per_node = wanted.gpus_per_node;
  request.gpus = wanted.gpus(settings.slots);
  request.seconds = wanted.seconds;
  request.avoid = std::move(avoid);
  return request;
}

Expected<void> Allocations::request(const Wanted& wanted, std::vector<std::string> avoid) {
  const Settings& settings = context_.settings;
  SWEEP_GET(const auto row,
            context_.store.create_allocation(settings.sweep, settings.launcher, settings.spool_root));
  HeldAllocation& held = held_[row.id];
  held.request = request_for(row, wanted, std::move(avoid));
  if (!settings.judge_node) held.apply(AllocationEvent::kNodesKnown);
  std::error_code ec;
  std::filesystem::create_directories(row.spool, ec);
  const auto asked =
      ec ? Expected<void>(tl::unexpected(
               Error{fmt::format("{}: the spool folder cannot be made: {}; free space on its disk "
                                 "(df shows it, df -i its inodes), then run again",
                                 row.spool, ec.message()),
                     is_disk_full(ec.value()) ? ErrorKind::kDiskFull : ErrorKind::kFailed, row.spool}))
         : context_.launcher.request(held.request);
  if (asked) return {};
  held_.erase(row.id);
  SWEEP_TRY(context_.store.end_allocation(row.id, asked.error().message));
  return asked;
}

Expected<void> Allocations::start(HeldAllocation& held, const launch::Started& started) {
  const auto now = context_.now();
  held.apply(AllocationEvent::kStarted);
  for (const auto& host : started.hosts) held.hosts[static_cast<i64>(held.hosts.size())] = host;
  held.observed_since = now;
  const double held_s = std::max(started.held_s, held.held_before_s);
  held.since = now - span_of(held_s);
  if (started.seconds_left) {
    held.until = now + span_of(*started.seconds_left);
    held.total_s = started.held_s + *started.seconds_left;
  }
  SWEEP_TRY(context_.store.allocation_started(started.id, started.where, started.pid,
                                              {held.request.nodes, held.gpus_each(), held_s}));
  if (context_.settings.allocate_per_shape)
    context_.observer.on_note(
        fmt::format("allocation {} of {} nodes runs: {}", started.id, held.request.nodes, started.where));
  return {};
}

void Allocations::finish(HeldAllocation& held, bool now) {
  held.apply(AllocationEvent::kFinish);
  const auto id = held.request.id;
  if (auto told = context_.launcher.finish(id, now); !told) context_.launcher.kill(id);
}

void Allocations::finish_all(bool now) {
  for (const auto& id : ids())
    if (HeldAllocation* held = find(id)) finish(*held, now);
}

void Allocations::finish_on(const std::string& host) {
  for (const auto& id : ids())
    if (HeldAllocation* held = find(id); held->hosts == Hosts{{0, host}} && !held->ends())
      finish(*held, false);
}

void Allocations::kill_all() {
  for (const auto& id : ids()) context_.launcher.kill(id);
}

HeldAllocation Allocations::take(const std::string& id) {
  const auto found = held_.find(id);
  HeldAllocation ended = std::move(found->second);
  held_.erase(found);
  ended_gpu_s_ += ended.gpu_seconds(context_.now());
  ended_slowdown_.add(ended.slowdown(context_.now()));
  return ended;
}

// One of an earlier run that ended before this run saw it start has held its nodes until its agent's last
// record.
Expected<void> Allocations::close(const HeldAllocation& ended, const std::string& reason) {
  const auto& request = ended.request;
  if (ended.since || !ended.adopted)
    return context_.store.end_allocation(request.id, reason, {.held_s = ended.held_seconds(context_.now())});
  SWEEP_TRY(context_.store.end_allocation(request.id, reason,
                                          {.last_message_unix_ns = last_message_unix_ns(request.spool)}));
  SWEEP_GET(const auto rows, context_.store.allocations(context_.settings.sweep));
  for (const auto& row : rows)
    if (row.id == request.id)
      ended_gpu_s_ += row.held_s * static_cast<double>(request.nodes * ended.gpus_each());
  return {};
}

Expected<void> Allocations::note_overdue() {
  for (auto& [id, held] : held_) {
    if (held.silence_told || !held.overdue(context_.now())) continue;
    held.silence_told = true;
    SWEEP_TRY(context_.note(
        EventKind::kAllocationSilent,
        fmt::format("allocation {} says nothing, although its attempts must have ended by their deadlines; "
                    "agent.log in {} may say why (a full disk, a node that hangs)",
                    id, held.request.spool.string())));
  }
  return {};
}

HeldAllocation* Allocations::find(const std::string& id) {
  const auto found = held_.find(id);
  return found == held_.end() ? nullptr : &found->second;
}

std::vector<std::string> Allocations::ids() const {
  std::vector<std::string> out;
  for (const auto& [id, held] : held_) out.push_back(id);
  return out;
}

i64 Allocations::nodes() const {
  i64 nodes = 0;
  for (const auto& [id, held] : held_) nodes += held.request.nodes;
  return nodes;
}

i64 Allocations::at_work() const {
  return std::ranges::count_if(held_, [](const auto& each) { return each.second.at_work(); });
}

std::vector<Capacity> Allocations::capacities() const {
  const bool by_shape = context_.settings.allocate_per_shape;
  const double target = target_seconds(context_.settings.bounds), factor = slowdown();
  std::vector<Capacity> out;
  for (const auto& [id, held] : held_) {
    const double left = held.ends() ? 0 : std::min(target, held.seconds_left(context_.now(), target));
    out.push_back({by_shape ? held.request.hardware : "", held.request.nodes,
                   by_shape ? held.request.ranks_per_node : 1,
                   left * static_cast<double>(held.request.nodes) - factor * held.attempts.seconds()});
  }
  return out;
}

bool Allocations::may_request_more() const {
  const auto& bounds = context_.settings.bounds;
  return held_.empty() || (static_cast<i64>(held_.size()) < bounds.max_allocations &&
                           (bounds.max_nodes <= 0 || nodes() < bounds.max_nodes));
}

double Allocations::gpu_seconds() const {
  double used = ended_gpu_s_;
  for (const auto& [id, held] : held_) used += held.gpu_seconds(context_.now());
  return used;
}

double Allocations::slowdown() const {
  SlowdownEstimate all = ended_slowdown_;
  for (const auto& [id, held] : held_) all.add(held.slowdown(context_.now()));
  return all.factor();
}

}  // namespace sweep::run
