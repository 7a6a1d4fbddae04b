#include "orchestrator/simulate/sim_clock.h"

#include <boost/asio/io_context.hpp>

namespace sweep::simulate {

void SimClock::run(boost::asio::io_context& io) {
  for (;;) {
    io.poll();  // signals, and what was posted for now
    if (io.stopped() || waiting_.empty()) return;
    auto next = waiting_.extract(waiting_.begin());
    now_ = next.key().first;
    next.mapped()();
  }
}

}  // namespace sweep::simulate
