#include "orchestrator/export/send.h"

#include <fmt/format.h>

#include <memory>

#include "orchestrator/export/http.h"
#include "orchestrator/export/interrupt.h"
#include "orchestrator/export/journal.h"

namespace sweep::exports {
namespace {

// The work of both online exports around their tracker.
class Connection {
 public:
  Connection(const SendOptions& options, const Listener& listener) : options_(options), listener_(listener) {}

  Expected<RetryingClient> client(const std::string& base, Expected<Credentials> credentials) {
    if (!credentials) return tl::unexpected(credentials.error());
    if (sends_in_the_clear(base) && !credentials->authorization.empty())
      listener_.note(fmt::format("note: the key travels unencrypted to {}", base));
    auto http = Http::make({options_.ca, options_.timeout_s, [this] { return interrupts_.asked(); }},
                           std::move(*credentials));
    if (!http) return tl::unexpected(http.error());
    http_ = std::move(*http);
    return RetryingClient({[this](const Request& request) { return http_->send(request); },
                           [this](double seconds) { return interrupts_.pause(seconds); }, listener_.note},
                          {});
  }

  Expected<Sent> deliver_to(Tracker& tracker, const FinishedTrials& trials) {
    SWEEP_GET(auto journal, Journal::open(options_.journal));
    SWEEP_GET(const auto whole, trials.as_whole());
    DeliveryPlan plan;
    plan.runs = trials.size();
    plan.run = [&](i64 index) { return trials.run(index); };
    plan.progress = [&](const Deliveries&, i64 index) { listener_.progress(index + 1, trials.size()); };
    plan.interrupted = [this] { return interrupts_.asked(); };
    plan.again = options_.again;
    SWEEP_GET(auto done, deliver(tracker, *journal, whole, plan));
    return Sent{std::move(done), tracker.place()};
  }

 private:
  const SendOptions& options_;
  const Listener& listener_;
  Interrupts interrupts_;
  std::unique_ptr<Http> http_;
};

void count(Deliveries& done, WandbOffline::Written written) {
  switch (written) {
    case WandbOffline::Written::kNew:
      ++done.sent;
      break;
    case WandbOffline::Written::kUnchanged:
      ++done.unchanged;
      break;
    case WandbOffline::Written::kReplaced:
      ++done.updated;
      break;
  }
}

}  // namespace

Expected<Sent> send_to_wandb(const FinishedTrials& trials, const WandbTarget& target,
                             const SendOptions& options, const Listener& listener) {
  Connection connection(options, listener);
  SWEEP_GET(auto client,
            connection.client(target.base, wandb_credentials({process_environment(), options.key_file},
                                                             host_of(target.base))));
  WandbOnline tracker(target, std::move(client));
  return connection.deliver_to(tracker, trials);
}

Expected<Sent> send_to_mlflow(const FinishedTrials& trials, const MlflowTarget& target,
                              const SendOptions& options, const Listener& listener) {
  Connection connection(options, listener);
  SWEEP_GET(auto client,
            connection.client(target.base, mlflow_credentials({process_environment(), options.key_file},
                                                              host_of(target.base))));
  Mlflow tracker(target, std::move(client), listener.note);
  return connection.deliver_to(tracker, trials);
}

Deliveries write_offline(const FinishedTrials& trials, const WandbOffline& writer, const Listener& listener) {
  Deliveries done;
  Interrupts interrupts;
  for (i64 i = 0; i < trials.size(); ++i) {
    if (interrupts.asked()) {
      done.stopped_by = DeliveryError{DeliveryError::kInterrupted, "interrupted"};
      break;
    }
    const auto run = trials.run(i);
    const auto written = run ? writer.write(*run) : tl::unexpected(run.error());
    if (written)
      count(done, *written);
    else
      done.refused.push_back(written.error().message);
    listener.progress(i + 1, trials.size());
  }
  return done;
}

std::string sent_line(const Sent& sent, const FinishedTrials& trials) {
  const Deliveries& done = sent.done;
  return fmt::format("{}: {} of {} finished trials are there ({} sent, {} updated, {} unchanged){}\n",
                     sent.place, done.sent + done.updated + done.unchanged, trials.size(), done.sent,
                     done.updated, done.unchanged,
                     trials.left_out() > 0
                         ? fmt::format("; {} pruned or unfinished ones are not exported", trials.left_out())
                         : "");
}

}  // namespace sweep::exports
