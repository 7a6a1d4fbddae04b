// Watching: snapshots, status.json, and following a sweep that another process runs.
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "orchestrator/run/run_sweep.h"
#include "orchestrator/run/time_left.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::run {

Expected<Snapshot> take_snapshot(store::Store& store, i64 sweep, double elapsed_s) {
  SWEEP_GET(auto counts, store.progress(sweep));
  Snapshot shot;
  shot.counts = std::move(counts);
  shot.elapsed_s = elapsed_s;
  SWEEP_GET(const auto work, store.workload(sweep));
  shot.seconds_left = seconds_left(work);
  if (auto metric = store.usual_metric(sweep)) shot.best_by = std::move(*metric);
  auto best = store.best(sweep, shot.best_by, 1);
  if (best && !best->empty()) shot.best = std::move(best->front());
  return shot;
}

void write_status_file(const std::filesystem::path& path, const Snapshot& shot) {
  nlohmann::json outcomes = nlohmann::json::object();
  for (const auto& [outcome, count] : shot.counts.by_outcome)
    outcomes[std::string(to_string(outcome))] = count;
  nlohmann::json j = {{"total", shot.counts.total},     {"pending", shot.counts.pending},
                      {"running", shot.counts.running}, {"outcomes", outcomes},
                      {"elapsed_s", shot.elapsed_s},    {"best", nullptr}};
  if (shot.best) j["best"] = {{"trial", shot.best->trial_id}, {"metrics", to_json(shot.best->metrics)}};
  if (!files::write_atomically(path, dump(j) + "\n")) return;
}

namespace {

constexpr double kAskEvery = 5;  // seconds

class Watch {
 public:
  Watch(store::Store& store, i64 sweep, Observer& observer, const AskJob& ask)
      : store_(store),
        sweep_(sweep),
        observer_(observer),
        ask_(ask),
        signals_(io_, SIGINT, SIGTERM),
        timer_(io_) {}

  Expected<RunEnd> run() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (error) return;
      end_ = RunEnd{End::kInterrupted, "no longer watching; the sweep goes on"};
      io_.stop();
    });
    look();
    io_.run();
    if (error_) return tl::unexpected(*error_);
    return end_;
  }

 private:
  void look() {
    if (auto shot = take_snapshot(store_, sweep_, elapsed_s())) observer_.on_snapshot(*shot);
    const auto held = holder();
    if (!held) error_ = held.error();
    if (!held) return io_.stop();
    if (!*held) return on_free();
    say_if_still(**held);
    if ((**held).status == store::LeaseStatus::kUncertain) {
      end_ = RunEnd{End::kSilent, "nothing is heard of the process that runs it"};
      return io_.stop();
    }
    timer_.expires_after(std::chrono::seconds(1));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) look();
    });
  }
  // Asks the scheduler about the holder's job too: it may know of the end long before the silence would show it.
  Expected<std::optional<store::LeaseHolder>> holder() {
    auto out = store_.lease(sweep_, known_);
    const bool silent = out && *out && (*out)->slurm_job > 0 && (*out)->beat != store::Beat::kRecent;
    if (!silent || elapsed_s() < ask_again_s_) return out;
    known_ = {.job = ask_(**out), .job_of = (*out)->token};
    ask_again_s_ = elapsed_s() + kAskEvery;
    return store_.lease(sweep_, known_);
  }
  void say_if_still(const store::LeaseHolder& holder) {
    const bool still = store::stands_still(holder);
    if (still && !said_still_)
      observer_.on_note(fmt::format("process {} lives, and its last heartbeat was {:.0f} s ago: {}",
                                    holder.pid, holder.silent_s, still_holder_advice(holder)));
    said_still_ = still;
  }
  // A released lease means that the run has ended. A lease that is still there: the process is gone, and the sweep can
  // be taken over.
  void on_free() {
    const auto leased = store_.is_leased(sweep_);
    if (!leased) error_ = leased.error();
    if (leased && *leased) end_ = RunEnd{End::kSilent, "the process that ran it is gone"};
    io_.stop();
  }
  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }

  store::Store& store_;
  i64 sweep_;
  Observer& observer_;
  const AskJob& ask_;
  store::Claim known_;
  double ask_again_s_ = 0;
  bool said_still_ = false;
  boost::asio::io_context io_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  RunEnd end_;
  std::optional<Error> error_;
};

}  // namespace

std::string still_holder_advice(const store::LeaseHolder& holder) {
  return fmt::format(
      "if it was stopped (Ctrl-Z, SIGSTOP), `kill -CONT {0}` lets it go on; `kill -9 {0}` ends it, and "
      "`sweep resume` goes "
      "on from there",
      holder.pid);
}

Expected<RunEnd> watch(store::Store& store, i64 sweep, Observer& observer, const AskJob& ask) {
  return Watch(store, sweep, observer, ask).run();
}

}  // namespace sweep::run
