#include "orchestrator/store/lease.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <sstream>

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
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const auto after_name = line.rfind(')');  // the name may hold spaces and brackets
  if (after_name == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(after_name + 1));
  std::string field;
  for (int number = 3; fields >> field; ++number) {
    if (number == 3 && (field == "Z" || field == "X")) return std::nullopt;
    if (number == 22) return std::stoll(field);
  }
  return std::nullopt;
}

LeaseHolder this_process() {
  LeaseHolder self;
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  self.host = host;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> self.boot_id;
  self.pid = ::getpid();
  self.pid_start = living_pid_start(self.pid).value_or(0);
  return self;
}

std::optional<Leases::Row> Leases::read(Work& work, i64 sweep) {
  auto rows = work.rows(
      "SELECT host, boot_id, pid, pid_start, heartbeat_unix_ns, token, beats FROM lease WHERE sweep = ?",
      sweep);
  if (!rows.next()) return std::nullopt;
  Row row;
  rows.read(0, row.holder.host), rows.read(1, row.holder.boot_id), rows.read(2, row.holder.pid);
  rows.read(3, row.holder.pid_start), rows.read(4, row.holder.heartbeat_unix_ns);
  rows.read(5, row.token), rows.read(6, row.beats);
  return row;
}

// On this host and boot the process table knows. A boot that is over, on a filesystem of this machine alone,
// is dead. Else (another host; a container that shares our kernel but not our process table) only the
// heartbeat speaks.
Leases::Health Leases::judge(const Row& row, i64 sweep) {
  const LeaseHolder self = *seams_.self;
  if (row.holder.boot_id == self.boot_id && row.holder.host == self.host)
    return seams_.living_pid_start(row.holder.pid) == row.holder.pid_start ? Health::kAlive : Health::kDead;
  if (!network_ && row.holder.boot_id != self.boot_id) return Health::kDead;
  return judge_by_heartbeat(row, sweep);
}

// Two witnesses: the wall clocks of two hosts (which may jump), and the beats seen to grow against our steady
// clock.
Leases::Health Leases::judge_by_heartbeat(const Row& row, i64 sweep) {
  const double now = seams_.steady_s();
  const auto seen = looks_.find(sweep);
  if (seen == looks_.end() || seen->second.token != row.token) {
    looks_[sweep] = Look{row.token, row.beats, now};
  } else if (seen->second.beats != row.beats) {
    looks_[sweep] = Look{row.token, row.beats, now};
    return Health::kAlive;
  } else if (now - seen->second.first_seen_s > static_cast<double>(kLeaseSilenceNs) * 1e-9) {
    return Health::kSilent;
  }
  const i64 silence = seams_.now_unix_ns() - row.holder.heartbeat_unix_ns;
  return silence > kLeaseSilenceNs || silence < -kLeaseSilenceNs ? Health::kSilent : Health::kAlive;
}

std::optional<LeaseHolder> Leases::take(Work& work, i64 sweep, bool take_over) {
  const auto row = read(work, sweep);
  const auto mine = tokens_.find(sweep);
  const bool ours = row && mine != tokens_.end() && mine->second == row->token;
  if (row && !ours) {
    const Health health = judge(*row, sweep);
    if (health == Health::kAlive || (health == Health::kSilent && !take_over)) return row->holder;
  }
  pending_token_ = ours ? row->token : random_token();
  const LeaseHolder self = *seams_.self;
  work.run(
      "INSERT OR REPLACE INTO lease(sweep, host, boot_id, pid, pid_start, token, beats, heartbeat_unix_ns) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      sweep, self.host, self.boot_id, self.pid, self.pid_start, pending_token_, row ? row->beats + 1 : i64{1},
      seams_.now_unix_ns());
  return std::nullopt;
}

void Leases::committed(i64 sweep, bool held) {
  if (held)
    tokens_[sweep] = pending_token_;
  else
    tokens_.erase(sweep);
}

std::optional<LeaseHolder> Leases::holder(Work& work, i64 sweep) {
  const auto row = read(work, sweep);
  if (!row || judge(*row, sweep) == Health::kDead) return std::nullopt;
  return row->holder;
}

bool Leases::held_by_other(Work& work, i64 sweep) {
  const auto row = read(work, sweep);
  if (!row) return false;
  const auto mine = tokens_.find(sweep);
  if (mine != tokens_.end() && mine->second == row->token) return false;
  return judge(*row, sweep) != Health::kDead;
}

void Leases::guard(Work& work, i64 sweep) {
  const auto row = read(work, sweep);
  const auto mine = tokens_.find(sweep);
  if (mine != tokens_.end()) {
    if (row && row->token == mine->second) return;
    return work.refuse(
        fmt::format("the lease on this sweep in '{}' was lost{}; nothing was written. Only the holder may "
                    "go on: end this run",
                    work.db().path().string(), row ? " to " + describe(row->holder) : ""));
  }
  if (row && judge(*row, sweep) != Health::kDead)
    work.refuse(fmt::format(
        "this sweep in '{}' is being run by {}; stop that run first (`sweep stop`), or watch it with "
        "`sweep status`",
        work.db().path().string(), describe(row->holder)));
}

void Leases::require(Work& work, i64 sweep) {
  if (!tokens_.contains(sweep))
    return work.refuse("no attempt may begin before this process has taken the sweep's lease");
  guard(work, sweep);
}

void Leases::beat(Work& work, i64 sweep) {
  require(work, sweep);
  work.run("UPDATE lease SET beats = beats + 1, heartbeat_unix_ns = ? WHERE sweep = ?", seams_.now_unix_ns(),
           sweep);
}

void Leases::release(Work& work, i64 sweep) {
  const auto mine = tokens_.find(sweep);
  if (mine != tokens_.end()) work.run("DELETE FROM lease WHERE sweep = ? AND token = ?", sweep, mine->second);
}

}  // namespace sweep::store
