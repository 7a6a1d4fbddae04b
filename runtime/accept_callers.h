// Accepts callers one after the other, until the acceptor is closed or its owner is gone (`alive`). `take` is told the
// caller's address too: a socket whose other end has hung up does not know it any more. After one that could not be
// accepted there is a pause: where no file descriptor is left, the next try fails at once.
#pragma once
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "runtime/coroutine.h"

namespace sweep {

template <class Protocol>
awaitable<void> accept_callers(
    boost::asio::basic_socket_acceptor<Protocol>& acceptor, std::shared_ptr<const bool> alive,
    std::function<void(typename Protocol::socket, typename Protocol::endpoint)> take) {
  while (*alive && acceptor.is_open()) {
    typename Protocol::endpoint from;
    auto [error, socket] = co_await acceptor.async_accept(from, kAsTuple);
    if (error == boost::asio::error::operation_aborted)
      co_return;  // closed, perhaps by the owner's destructor
    if (!*alive || !acceptor.is_open()) co_return;
    if (!error) {
      take(std::move(socket), from);
      continue;
    }
    boost::asio::steady_timer pause(acceptor.get_executor(), std::chrono::milliseconds(100));
    co_await pause.async_wait(kAsTuple);
  }
}

}  // namespace sweep
