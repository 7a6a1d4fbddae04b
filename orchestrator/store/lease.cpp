#include "orchestrator/store/lease.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <ctime>
#include <fstream>
#include <random>

#include "base/expected.h"
#include "base/proc.h"
#include "base/time.h"
#include "orchestrator/store/record_sql.h"
#include "orchestrator/store/stored_rows.h"
#include "runtime/own_job.h"

namespace sweep::store {
namespace {

std::string random_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

std::string describe(const LeaseHolder& holder) {
  return fmt::format("process {} on host '{}'", holder.pid, holder.host);
}

}  // namespace

std::optional<i64> living_pid_start(i64 pid) {
  const auto stat = proc::stat_of(std::to_string(pid));
  if (!stat && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == EPERM) return kHiddenStart;
  if (!stat || stat->state == 'Z' || stat->state == 'X') return std::nullopt;
  return stat->start_ticks;
}

LeaseHolder this_process() {
  LeaseHolder self;
  self.host = proc::host_name();
  std::ifstream("/proc/sys/kernel/random/boot_id") >> self.boot_id;
  self.pid = ::getpid();
  struct stat table {};
  if (::stat("/proc/self/ns/pid", &table) == 0) self.pid_namespace = static_cast<i64>(table.st_ino);
  self.pid_start = living_pid_start(self.pid).value_or(0);
  if (auto job = own_job()) {
    self.slurm_job = job->id;
    self.slurm_cluster = std::move(job->cluster);
  }
  return self;
}

i64 boot_unix_ns() {
  timespec up{};
  ::clock_gettime(CLOCK_BOOTTIME, &up);
  return unix_ns_now() - (static_cast<i64>(up.tv_sec) * 1'000'000'000 + up.tv_nsec);
}

std::optional<LeaseHolder> Leases::read(Transaction& work, i64 sweep) {
  const TableColumns columns{{"lease", columns_in(work, "lease")}};
  auto rows = work.rows(fmt::format("SELECT {} FROM lease l WHERE l.sweep = ?",
                                    select_list(columns, "lease", "l", stored_fields<LeaseHolder>())),
                        sweep);
  if (!rows.next()) return std::nullopt;
  LeaseHolder holder;
  read_fields(rows, 0, holder);
  return holder;
}

// The process table knows the processes of this boot, host and PID namespace: of a container that shares the
// kernel nothing is seen. On a filesystem of this machine alone, a holder of this name whose last heartbeat
// is older than the machine's start ended with the boot before. One that sent a heartbeat since, or has
// another name, may be a virtual machine that shares the disk: its heartbeats decide.
Process Leases::process_of(const LeaseHolder& holder) const {
  const LeaseHolder& self = *dependencies_.self;
  const bool same_name = holder.host == self.host;
  if (holder.boot_id == self.boot_id) {
    const bool same_table = holder.pid_namespace == 0 || holder.pid_namespace == self.pid_namespace;
    if (!same_name || !same_table) return Process::kOutOfSight;
    const auto start = dependencies_.living_pid_start(holder.pid);
    if (start == kHiddenStart) return Process::kOutOfSight;
    return start == holder.pid_start ? Process::kAlive : Process::kGone;
  }
  if (network_) return same_name ? Process::kRebooted : Process::kOutOfSight;
  return same_name && holder.heartbeat_unix_ns < dependencies_.boot_unix_ns() ? Process::kGone
                                                                              : Process::kOtherMachine;
}

// Heartbeats that come while we look are timed by our own clock. Until one comes, the wall clocks of two
// hosts speak, which may differ or jump either way, and how long we have looked.
void Leases::judge(LeaseHolder& holder, i64 sweep, const Claim& claim) {
  const double now = dependencies_.steady_s();
  auto [at, first] = looks_.try_emplace(sweep, Look{holder.token, holder.beats, now, false});
  Look& look = at->second;
  if (look.token != holder.token) look = Look{holder.token, holder.beats, now, false};
  if (look.beats != holder.beats) look = Look{holder.token, holder.beats, now, true};
  const double looked_s = now - look.since_s;
  const double by_clocks_s =
      std::abs(static_cast<double>(dependencies_.now_unix_ns() - holder.heartbeat_unix_ns)) * 1e-9;
  holder.silent_s = look.changed ? looked_s : std::max(looked_s, by_clocks_s);
  holder.watched = looked_s >= kQuietSeconds;
  holder.process = process_of(holder);
  holder.beat = beat_of(holder.silent_s);
  holder.heartbeats = look.changed && holder.beat == Beat::kRecent;
  if (claim.job_of == holder.token) holder.job = claim.job;
  holder.status = lease_status_of(holder.process, holder.job, holder.beat, holder.watched);
}

std::optional<LeaseHolder> Leases::take(Transaction& work, i64 sweep, const Claim& claim) {
  auto row = read(work, sweep);
  const auto mine = tokens_.find(sweep);
  const bool ours = row && mine != tokens_.end() && mine->second == row->token;
  if (row && !ours) {
    judge(*row, sweep, claim);
    const bool given_up = claim.take_over && row->status == LeaseStatus::kUncertain && row->watched;
    if (row->status != LeaseStatus::kFree && !given_up) return row;
  }
  pending_token_ = ours ? row->token : random_token();
  LeaseHolder self = *dependencies_.self;
  self.token = pending_token_;
  self.beats = row ? row->beats + 1 : 1;
  self.heartbeat_unix_ns = dependencies_.now_unix_ns();
  static const std::string sql =
      insert_statement("INSERT OR REPLACE", "lease", {"sweep"}, stored_fields<LeaseHolder>());
  if (Statement* insert = work.ready(sql)) {
    insert->put(1, sweep);
    put_fields(*insert, 2, self);
    work.finish(*insert);
  }
  return std::nullopt;
}

void Leases::committed(i64 sweep, bool held) {
  if (!held) {
    tokens_.erase(sweep);
    return;
  }
  tokens_[sweep] = pending_token_;
  lost_.erase(sweep);
}

std::optional<LeaseHolder> Leases::holder(Transaction& work, i64 sweep, const Claim& known) {
  auto row = read(work, sweep);
  if (!row) return std::nullopt;
  judge(*row, sweep, known);
  return row->status == LeaseStatus::kFree ? std::nullopt : row;
}

bool Leases::held_by_other(Transaction& work, i64 sweep) {
  const auto row = holder(work, sweep);
  const auto mine = tokens_.find(sweep);
  return row && (mine == tokens_.end() || mine->second != row->token);
}

void Leases::guard(Transaction& work, i64 sweep) {
  const auto mine = tokens_.find(sweep);
  if (mine != tokens_.end()) {
    const auto row = read(work, sweep);
    if (row && row->token == mine->second) return;
    if (work.failed()) return;  // it could not be read
    lost_.insert(sweep);
    return work.refuse(Error{
        fmt::format("the lease on this sweep in '{}' was lost{}; nothing was written. Only the holder may "
                    "go on: end this run",
                    work.db().path().string(), row ? " to " + describe(*row) : ""),
        ErrorKind::kBusy, work.db().path().string()});
  }
  if (const auto row = holder(work, sweep))
    work.refuse(
        Error{fmt::format("this sweep in '{}' is held by {}, last heard of {:.0f} s ago; stop that run first "
                          "(`sweep stop`), or look at it "
                          "with `sweep status`",
                          work.db().path().string(), describe(*row), row->silent_s),
              ErrorKind::kBusy, work.db().path().string()});
}

void Leases::require(Transaction& work, i64 sweep) {
  if (!tokens_.contains(sweep))
    return work.refuse(
        Error{"no attempt may begin before this process has taken the sweep's lease", ErrorKind::kRefused});
  guard(work, sweep);
}

void Leases::beat(Transaction& work, i64 sweep) {
  require(work, sweep);
  work.run("UPDATE lease SET beats = beats + 1, heartbeat_unix_ns = ? WHERE sweep = ?",
           dependencies_.now_unix_ns(), sweep);
}

void Leases::release(Transaction& work, i64 sweep) {
  const auto mine = tokens_.find(sweep);
  if (mine != tokens_.end()) work.run("DELETE FROM lease WHERE sweep = ? AND token = ?", sweep, mine->second);
}

}  // namespace sweep::store
