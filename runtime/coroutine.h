// Coroutines of Boost.Asio on an event loop. Their parameters are values, because a coroutine outlives the call
// that starts it. One that uses an object keeps it alive, or waits only for what that object ends with itself.
// `co_await` is a statement or initialises a variable: gcc 12 miscompiles it in conditions and beside braces.
#pragma once
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <exception>
#include <memory>
#include <utility>

namespace sweep {

using boost::asio::awaitable;

// An operation of Asio gives its error and its results as a tuple; it throws nothing.
inline constexpr auto kAsTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

// Starts a coroutine: at once if the caller runs on the event loop, else from the loop. What it throws leaves the
// loop, as from a callback.
template <class Loop>
void start_coroutine(Loop&& loop, awaitable<void> work) {
  boost::asio::co_spawn(loop, std::move(work), [](const std::exception_ptr& error) {
    if (error) std::rethrow_exception(error);
  });
}

// Runs the loop until nothing is left to do, and returns the result of this coroutine.
template <class Result>
Result run_to_end(boost::asio::io_context& loop, awaitable<Result> work) {
  auto result = boost::asio::co_spawn(loop, std::move(work), boost::asio::use_future);
  loop.restart();
  loop.run();
  return result.get();
}

// Waits until the callback that `start` is given has been called. If the callback is destroyed without a call, the
// waiting coroutine never goes on: the event loop destroys it.
template <class Answer, class Start>
awaitable<Answer> wait_for_call(Start start) {
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(Answer)>(
      [start = std::move(start)](auto handler) mutable {
        const auto waiting = std::make_shared<decltype(handler)>(std::move(handler));
        start([waiting](const Answer& answer) { (*waiting)(answer); });
      },
      boost::asio::use_awaitable);
}

}  // namespace sweep
