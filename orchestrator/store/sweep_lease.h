// SweepLease: who runs a sweep, and requests that it stop.
#pragma once
#include <functional>
#include <optional>

#include "base/expected.h"
#include "orchestrator/store/holder.h"

namespace sweep::store {

struct StoreFile;

class SweepLease {
 public:
  explicit SweepLease(StoreFile& file) : file_(file) {}

  // The holder that keeps us from the lease; nullopt: we took it. A holder that is known to be gone is taken
  // over (holder.h), a silent one only when the claim says so and it was watched. Every writing call on a
  // sweep fails once this store's lease on it was lost, or while another holds it. Taking the lease makes
  // trials whose only answer is node_lost or cancelled pending again, and withdraws an old stop request.
  Expected<std::optional<LeaseHolder>> take_lease(i64 sweep, const Claim& claim);
  Expected<std::optional<LeaseHolder>> take_lease(i64 sweep) { return take_lease(sweep, Claim{}); }
  // nullopt: there is none, or its holder is gone.
  Expected<std::optional<LeaseHolder>> lease(i64 sweep, const Claim& known);
  Expected<std::optional<LeaseHolder>> lease(i64 sweep) { return lease(sweep, Claim{}); }
  // Whether a lease is there that nobody released, by a holder that lives or one that is gone.
  Expected<bool> is_leased(i64 sweep);
  // Another process has taken the lease that this store held.
  bool lease_lost(i64 sweep) const;
  // Does `act` while no other process can take the lease; refuses without the lease. `act` must not use the
  // store.
  Expected<void> while_held(i64 sweep, const std::function<Expected<void>()>& act);
  Expected<void> beat(i64 sweep);  // error: the lease was lost, or the database is no longer at its path
  Expected<void> release_lease(i64 sweep);  // error: not released, or the database is no longer at its path
  // Stop requests reach the lease holder through the database.
  Expected<void> request_stop(i64 sweep, bool now);
  Expected<std::optional<bool>> stop_requested(i64 sweep);  // nullopt: no; else `now`

 private:
  StoreFile& file_;
};

}  // namespace sweep::store
