#include "worker/rank/flight_door.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>

#include "base/files.h"
#include "schema/spool.h"

namespace sweep::rank {
namespace {

constexpr char kLeave = 'q';

void answer(const spool::fs::path& path, std::string (*trace)()) {
  try {
    if (const auto written = files::write_atomically(path, trace()); !written)
      std::fprintf(stderr, "sweep-rank: %s\n", written.error().message.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sweep-rank: the flight recorder cannot be read: %s\n", error.what());
  }
}

}  // namespace

// Opened for both directions, so that the end of a writer is not the end of the pipe.
FlightDoor::FlightDoor(const RankLaunch& launch, std::string (*trace)()) {
  const auto at = spool::flight_request(launch.rendezvous_dir, launch.rank);
  if (mkfifo(at.c_str(), 0600) != 0 && errno != EEXIST) return;
  pipe_ = open(at.c_str(), O_RDWR | O_CLOEXEC);
  if (pipe_ < 0) return;
  waiting_ = std::thread([pipe = pipe_, trace, to = spool::flight_trace(launch.attempt_dir, launch.rank)] {
    for (char asked = 0;;) {
      const ssize_t got = read(pipe, &asked, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got != 1 || asked == kLeave) return;
      answer(to, trace);
    }
  });
}

FlightDoor::~FlightDoor() {
  if (!waiting_.joinable()) return;
  if (write(pipe_, &kLeave, 1) == 1)
    waiting_.join();
  else
    waiting_.detach();
  close(pipe_);
}

}  // namespace sweep::rank
