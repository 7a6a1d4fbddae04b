// The pause after a caller that could not be accepted: where no file descriptor is left, the next try fails at once.
#pragma once
#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "runtime/coroutine.h"

namespace sweep::agent {

template <class Executor>
awaitable<void> pause_accepting(Executor executor) {
  boost::asio::steady_timer pause(executor, std::chrono::milliseconds(100));
  co_await pause.async_wait(kAsTuple);
}

}  // namespace sweep::agent
