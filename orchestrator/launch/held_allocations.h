// HeldAllocations: the part of a launcher that is the same for all of them: it finds an allocation by its id,
// posts into its inbox, acknowledges its outbox, asks it to finish, ends it. It owns the map. Its launcher
// obtains allocations and removes them. An `Each` has post(), acknowledge(), kill() and abandon(); a finish()
// of its own if more belongs to it than an inbox line. REQUIRES: the launcher's destructor calls
// abandon_all(), while what its allocations use still lives.
#pragma once
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/launcher.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::launch {

template <class Each>
class HeldAllocations : public Launcher {
 public:
  Expected<i64> post_attempt(const AllocationId& id, const Attempt& attempt) override {
    return post(id, spool::kAttempt, to_json(attempt));
  }
  Expected<void> finish(const AllocationId& id, bool now) override {
    if constexpr (requires(Each & each) { each.finish(now); }) {
      const auto held = find(id);
      return held ? held->finish(now) : unknown(id);
    } else {
      return post(id, spool::kFinish, to_json(Finish{now})).map([](i64) {});
    }
  }
  void kill(const AllocationId& id) override {
    if (const auto held = find(id)) held->kill();
  }
  void acknowledge(const AllocationId& id, std::uint64_t offset) override {
    if (const auto held = find(id)) held->acknowledge(offset);
  }

 protected:
  using Map = std::map<AllocationId, std::shared_ptr<Each>>;

  // Null: there is none. The allocation lives while the pointer is used, even if an event removes it from the
  // map.
  std::shared_ptr<Each> find(const AllocationId& id) const {
    const auto known = held_.find(id);
    return known == held_.end() ? nullptr : known->second;
  }
  bool busy_with(const AllocationId& id) const {
    const auto held = find(id);
    return held && !held->ended();
  }
  void abandon_all() {
    for (auto& [id, held] : held_) held->abandon();
    held_.clear();
  }

  Map held_;

 private:
  static tl::unexpected<Error> unknown(const AllocationId& id) {
    return fail(fmt::format("there is no allocation {}", id));
  }
  Expected<i64> post(const AllocationId& id, std::string_view kind, const nlohmann::json& body) {
    const auto held = find(id);
    if (!held) return unknown(id);
    return held->post(kind, body);
  }
};

}  // namespace sweep::launch
