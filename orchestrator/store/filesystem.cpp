// Which filesystems keep SQLite's write-ahead log from working (https://www.sqlite.org/wal.html: shared
// memory between hosts is needed, which network filesystems do not give).
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "orchestrator/store/store.h"

namespace sweep::store {
namespace {

// f_type magic numbers: linux/magic.h, and the projects' own sources for those that the kernel does not ship.
constexpr std::array<std::uint32_t, 16> kNetwork{
    0x6969,      // nfs
    0xff534d42,  // cifs
    0xfe534d42,  // smb2
    0x517b,      // smb
    0x0bd00bd0,  // lustre
    0x47504653,  // gpfs
    0x19830326,  // beegfs
    0x00c36400,  // ceph
    0x5346414f,  // afs
    0x6b414653,  // kafs
    0x73757245,  // coda
    0x01021997,  // 9p
    0x65735546,  // fuse: sshfs, glusterfs and others; local ones are treated with the same care
    0x20030528,  // orangefs
    0x01161970,  // gfs2
    0x7461636f,  // ocfs2
};

}  // namespace

bool on_network_filesystem(const std::filesystem::path& path) {
  std::error_code ignored;
  auto at = std::filesystem::absolute(path, ignored);
  while (!std::filesystem::exists(at, ignored) && at.has_relative_path()) at = at.parent_path();
  struct statfs info {};
  if (::statfs(at.c_str(), &info) != 0) return false;
  return std::ranges::find(kNetwork, static_cast<std::uint32_t>(info.f_type)) != kNetwork.end();
}

}  // namespace sweep::store
