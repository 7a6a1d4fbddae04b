// RetryingClient: sends a request until its answer is final. Pauses double from half a second, with jitter; a
// Retry-After replaces them; Ctrl-C ends a pause. The tracker decides which answers are tried again.
#pragma once
#include <functional>
#include <random>
#include <string>

#include "orchestrator/export/http.h"

namespace sweep::exports {

// Why something could not be delivered.
struct DeliveryError {
  enum Kind {
    kThisRun,  // the server refuses this one; others may pass
    kAll,      // nothing more can be sent now: no way through, no permission
    kInterrupted,
  };
  Kind kind = kAll;
  std::string sentence;
};
template <class T>
using Delivered = tl::expected<T, DeliveryError>;
inline tl::unexpected<DeliveryError> refused(std::string sentence) {
  return tl::unexpected(DeliveryError{DeliveryError::kThisRun, std::move(sentence)});
}

struct RetryPolicy {
  int tries = 8;           // tries of one request
  int tries_to_reach = 4;  // while no connection comes about at all
  double first_pause_s = 0.5, longest_pause_s = 60;
  double longest_asked_s = 600;  // a server that asks for more gets nothing now: export again later
};

// The services that the client needs: a clock, sleep, randomness.
struct Surroundings {
  Wire wire;
  std::function<bool(double seconds)> pause;     // false: interrupted
  std::function<void(const std::string&)> note;  // tells people what is waited for
};

class RetryingClient {
 public:
  using WorthAgain = bool (*)(long status);
  // Looks whether a request whose answer was lost has been carried out; a reply: it was, and this is its
  // answer.
  using Look = std::function<Delivered<std::optional<Reply>>()>;

  RetryingClient(Surroundings around, RetryPolicy patience)
      : around_(std::move(around)), patience_(patience), random_(std::random_device{}()) {}
  // The first answer that is not worth another try, whatever its status.
  Delivered<Reply> send(const Request&, WorthAgain, const Look& look = {});

 private:
  Delivered<void> wait(int tried, const std::optional<double>& asked, const std::string& why);
  Surroundings around_;
  RetryPolicy patience_;
  std::minstd_rand random_;
};

// "HTTP 404: <the server's own words>" for sentences: JSON errors unpacked, credentials, markup and length
// cut.
std::string words_of(const Reply&);

}  // namespace sweep::exports
