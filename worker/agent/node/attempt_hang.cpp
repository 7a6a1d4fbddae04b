// What an AttemptRun does about ranks that stand still: asks each for its flight recorder, gives them a moment to
// answer, and ends the attempt with what they said.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "schema/codec.h"
#include "schema/spool.h"
#include "worker/agent/evidence/flight_trace.h"
#include "worker/agent/node/attempt_run.h"

namespace sweep::agent {
namespace {

constexpr double kAnswerLimit = 2.0;  // seconds that ranks get to write their flight recorders
constexpr std::size_t kMostFlightBytes = 32u << 20;

// A byte into the pipe at which a rank waits for it; false: it has none, as a rank without NCCL.
bool ask_for_flight(const std::filesystem::path& pipe) {
  const int fd = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  const bool asked = ::write(fd, "d", 1) == 1;
  ::close(fd);
  return asked;
}

}  // namespace

// Moves on at once where no rank has a flight recorder.
void AttemptRun::ask_ranks(EndCause cause, nlohmann::json found) {
  giving_up_ = {cause, std::move(found)};
  stage_ = Stage::kAsking;
  set_deadline(kAnswerLimit);
  for (std::size_t i = 0; files_ && i < ranks_.size(); ++i)
    ranks_[i].asked =
        !ranks_[i].ended && ask_for_flight(spool::flight_request(files_->rendezvous(), world_rank(i)));
  if (answered()) give_up();
}

bool AttemptRun::answered() const {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    std::error_code ec;
    const bool waited_for = ranks_[i].asked && !ranks_[i].ended;
    if (waited_for && !std::filesystem::exists(spool::flight_trace(files_->dir(), world_rank(i)), ec))
      return false;
  }
  return true;
}

void AttemptRun::give_up() {
  nlohmann::json evidence = files_ && span_ ? collect_evidence() : nlohmann::json::object();
  evidence.update(giving_up_.found);
  set_cause(giving_up_.cause, std::move(evidence));
  terminate();
}

void AttemptRun::add_flight(std::size_t index, nlohmann::json& rank) const {
  if (!ranks_[index].asked) return;
  const auto path = spool::flight_trace(files_->dir(), world_rank(index));
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) {
    rank["flight"] = nullptr;  // it was asked and did not answer
    return;
  }
  const auto bytes = files::read_from(path, 0, kMostFlightBytes);
  rank["flight"] = to_json(read_flight_trace(bytes ? *bytes : ""));
}

}  // namespace sweep::agent
