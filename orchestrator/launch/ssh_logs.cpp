#include "orchestrator/launch/ssh_logs.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "orchestrator/launch/channel.h"

namespace sweep::launch {

void unpack_logs(boost::asio::io_context& io, const std::string& archive, const std::filesystem::path& spool,
                 std::size_t node, std::function<void()> done) {
  const auto tar = std::make_shared<std::unique_ptr<Channel>>();
  const std::string name = node == 0 ? "agent.log" : fmt::format("agent.n{}.log", node);
  *tar = std::make_unique<Channel>(
      io,
      std::vector<std::string>{"tar", "-xf", "-", "--no-same-owner", "-C", spool.string(),
                               fmt::format("--transform=s|^agent.log$|{}|", name), "attempts", "agent.log"},
      [](std::string_view) {},
      [&io, tar, done = std::move(done)](const Channel::Ends&) {
        boost::asio::post(io, [tar] { tar->reset(); });
        done();
      });
  (*tar)->write(archive);
  (*tar)->close_input();
}

}  // namespace sweep::launch
