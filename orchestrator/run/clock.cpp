#include "orchestrator/run/clock.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

namespace sweep::run {
namespace {

class SteadyClock final : public Clock {
 public:
  Point now() const override { return std::chrono::steady_clock::now(); }
  void after(boost::asio::io_context& io, Span span, std::function<void()> then) override {
    auto timer = std::make_shared<boost::asio::steady_timer>(io, span);
    timer->async_wait([timer, then = std::move(then)](const boost::system::error_code& error) {
      if (!error) then();
    });
  }
  void run(boost::asio::io_context& io) override { io.run(); }
};

}  // namespace

Clock& steady_clock() {
  static SteadyClock instance;
  return instance;
}

}  // namespace sweep::run
