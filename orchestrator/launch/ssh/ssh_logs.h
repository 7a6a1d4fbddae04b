// Copies the logs of ranks from a host's folder to the spool on this machine.
#pragma once
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <string>

#include "runtime/coroutine.h"

namespace sweep::launch {

// The shell line that writes the logs in a folder on a host to standard output as such an archive.
std::string logs_line(const std::string& folder);

// The path of the archive of a node's logs until it is unpacked.
std::filesystem::path logs_archive(const std::filesystem::path& spool, std::size_t node);

// Unpacks a tar archive, made by another machine, of `attempts` and `agent.log` (agent.n<node>.log for a node
// agent's) into the spool: plain files under the names that a spool has, nothing else of it. The archive is
// removed. Whether all of it was unpacked.
awaitable<bool> unpack_logs(boost::asio::io_context& io, std::filesystem::path archive,
                            std::filesystem::path spool, std::size_t node);

}  // namespace sweep::launch
