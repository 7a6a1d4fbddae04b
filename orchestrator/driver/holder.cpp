#include "orchestrator/driver/holder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/text.h"
#include "orchestrator/launch/slurm/job_word.h"
#include "orchestrator/launch/slurm/slurm_script.h"

namespace sweep::driver {
namespace {

constexpr double kSlurmLimit = 20;                           // seconds
constexpr auto kLookEvery = std::chrono::milliseconds(200);  // time between two looks at the lease
constexpr auto kAskSlurmEvery = std::chrono::seconds(5);
using store::Beat, store::Claim, store::LeaseHolder, store::LeaseStatus;

std::string time_text(i64 unix_ns) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(static_cast<std::time_t>(unix_ns / 1'000'000'000)));
}

// Since when, and what else is known.
std::string silence_text(const LeaseHolder& holder) {
  std::string known;
  if (holder.job == store::JobWord::kOver || holder.job == store::JobWord::kLost)
    known = "; Slurm says that its job is over";
  if (holder.job == store::JobWord::kAlive) known = "; Slurm says that its job runs";
  if (holder.process == store::Process::kRebooted)
    known += fmt::format("; {} was started anew since", holder.host);
  if (holder.process == store::Process::kOtherMachine)
    known += "; it ran on another machine, and the database's disk belongs to this one";
  return fmt::format("nothing was heard of {} since {} ({:.0f} s){}", holder_name(holder),
                     time_text(holder.heartbeat_unix_ns), holder.silent_s, known);
}

// Tries again and again to take a lease whose holder sends no heartbeat.
class Obtaining {
 public:
  Obtaining(store::Store& store, const store::SweepRow& sweep, std::string db, bool take_over, const Say& say,
            const run::AskJob& ask)
      : say_(say),
        ask_(ask),
        store_(store),
        sweep_(sweep),
        db_(std::move(db)),
        claim_{.take_over = take_over} {}

  Expected<Holder> run() {
    auto holder = store_.take_lease(sweep_.id, claim_);
    if (!holder || !*holder) return holder;
    learn(**holder);
    if (!worth_a_look(**holder)) return holder;
    say_first(**holder);
    holder = store_.take_lease(sweep_.id, claim_);  // Slurm's answer goes into the claim
    while (holder && *holder && !settled(**holder)) {
      std::this_thread::sleep_for(kLookEvery);
      if (std::chrono::steady_clock::now() - asked_ >= kAskSlurmEvery) learn(**holder);
      holder = store_.take_lease(sweep_.id, claim_);
    }
    if (holder) say_last(*holder);
    return holder;
  }

 private:
  bool known_gone(const LeaseHolder& holder) const {
    return claim_.job == store::JobWord::kOver || claim_.job == store::JobWord::kLost ||
           holder.process == store::Process::kRebooted || holder.process == store::Process::kOtherMachine;
  }
  void learn(LeaseHolder& holder) {
    asked_ = std::chrono::steady_clock::now();
    if (holder.process == store::Process::kAlive) return;
    claim_.job = ask_(holder), claim_.job_of = holder.token;
    holder.job = claim_.job;
  }
  bool worth_a_look(const LeaseHolder& holder) const {
    return holder.process != store::Process::kAlive &&
           (claim_.take_over || known_gone(holder) || holder.beat == Beat::kSilent);
  }
  // It lives; or enough was seen to know that a person must decide.
  bool settled(const LeaseHolder& holder) const {
    return holder.heartbeats ||
           (holder.status == LeaseStatus::kUncertain && holder.watched && !claim_.take_over);
  }
  void say_first(const LeaseHolder& holder) {
    const bool decided = claim_.take_over || known_gone(holder);
    say_(fmt::format("sweep {}: {}. {}", sweep_.name, holder_text(holder),
                     decided
                         ? "It is taken over unless a heartbeat comes"
                         : "If you know that it is gone, type `" + take_over_text(sweep_.name, db_) + "`"));
  }
  void say_last(const Holder& holder) {
    if (!holder)
      say_(fmt::format("sweep {} is taken over", sweep_.name));
    else if (holder->heartbeats)
      say_(fmt::format("sweep {}: a heartbeat came: it lives", sweep_.name));
    else
      say_(fmt::format(
          "sweep {}: no heartbeat came within {:.0f} s, and nothing says that it is gone: not taken over",
          sweep_.name, store::kQuietSeconds));
  }

  const Say& say_;
  const run::AskJob& ask_;
  store::Store& store_;
  const store::SweepRow& sweep_;
  std::string db_;
  Claim claim_;
  std::chrono::steady_clock::time_point asked_;
};

}  // namespace

store::JobWord job_word_on(const LeaseHolder& holder) {
  const auto word = launch::end_of_job(
      holder.slurm_job, holder.slurm_cluster,
      [](std::vector<std::string> words) { return launch::run_alone(std::move(words), kSlurmLimit); });
  switch (word) {
    case launch::JobEnd::kAlive:
      return store::JobWord::kAlive;
    case launch::JobEnd::kOver:
      return store::JobWord::kOver;
    case launch::JobEnd::kLost:
      return store::JobWord::kLost;
    case launch::JobEnd::kUnknown:
      break;
  }
  return store::JobWord::kUnknown;
}

Expected<Holder> holder_of(store::Store& store, i64 sweep, bool patient) {
  auto holder = store.lease(sweep);
  if (!holder || !*holder || (*holder)->beat == Beat::kRecent) return holder;
  const Claim known{.job = job_word_on(**holder), .job_of = (*holder)->token};
  holder = store.lease(sweep, known);
  while (patient && holder && *holder && !(*holder)->watched && !(*holder)->heartbeats) {
    std::this_thread::sleep_for(kLookEvery);
    holder = store.lease(sweep, known);
  }
  return holder;
}

Expected<Holder> obtain_lease(store::Store& store, const store::SweepRow& sweep,
                              const std::filesystem::path& db, bool take_over, const Say& say,
                              const run::AskJob& ask) {
  return Obtaining(store, sweep, db.string(), take_over, say, ask).run();
}

std::string holder_name(const LeaseHolder& holder) {
  return fmt::format("process {} on {}{}", holder.pid, holder.host,
                     holder.slurm_job > 0 ? fmt::format(" (Slurm job {})", holder.slurm_job) : "");
}

bool is_responsive(const LeaseHolder& holder) {
  return holder.process == store::Process::kAlive || holder.beat == Beat::kRecent;
}

std::string holder_text(const LeaseHolder& holder) {
  if (!is_responsive(holder)) return silence_text(holder);
  if (store::stands_still(holder))
    return fmt::format("run by {}, which lives and sent its last heartbeat {:.0f} s ago: {}",
                       holder_name(holder), holder.silent_s, run::still_holder_advice(holder));
  return fmt::format("run by {}, last heartbeat {:.0f} s ago", holder_name(holder), holder.silent_s);
}

Expected<std::string> run_by(store::Store& store, const store::SweepRow& sweep) {
  SWEEP_GET(const auto holder, holder_of(store, sweep.id));
  return holder ? holder_text(*holder) : std::string();
}

std::string take_over_text(const std::string& sweep, const std::string& db) {
  return fmt::format("sweep resume {} --db {} --take-over", shell_word(sweep), shell_word(db));
}

}  // namespace sweep::driver
