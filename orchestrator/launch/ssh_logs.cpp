#include "orchestrator/launch/ssh_logs.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "orchestrator/launch/channel.h"
#include "orchestrator/launch/slurm_script.h"

namespace sweep::launch {

std::string removal_line(const std::string& agent, const std::string& folder, const std::string& allocation) {
  return fmt::format(
      "{1} end --spool {0} --allocation {2} >/dev/null; cd {0} 2>/dev/null || exit 0; tar -cf - "
      "--exclude='*.progress' attempts agent.log 2>/dev/null; cd / && rm -rf {0} && rmdir \"$(dirname "
      "{0})\" 2>/dev/null; exit 0",
      shell_word(folder), shell_word(agent), shell_word(allocation));
}

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
