// What a host's folder held of the ranks' logs, brought beside the mailbox here.
#pragma once
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <string>

namespace sweep::launch {

// Unpacks a tar archive, made by another machine, of `attempts` and `agent.log` (agent.n<node>.log for a node agent's)
// into the spool: plain files under the names that a spool has, nothing else of it. The archive is removed. `done` is
// called once, whether it worked or not: logs are evidence, no results.
void unpack_logs(boost::asio::io_context& io, const std::filesystem::path& archive,
                 const std::filesystem::path& spool, std::size_t node, std::function<void()> done);

}  // namespace sweep::launch
