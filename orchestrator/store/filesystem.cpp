// The filesystems on which SQLite's write-ahead log works (https://www.sqlite.org/wal.html: all processes need shared
// memory, which hosts do not have with each other).
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "orchestrator/store/store.h"

namespace sweep::store {
namespace {

// f_type magic numbers (linux/magic.h, and the projects' own sources for those that the kernel does not ship) of
// filesystems that one machine mounts. A list of the shared ones would never be complete.
constexpr std::array<std::uint32_t, 19> kLocal{
    0xef53,      // ext2, ext3, ext4
    0x58465342,  // xfs
    0x9123683e,  // btrfs
    0x2fc12fc1,  // zfs
    0x01021994,  // tmpfs
    0x858458f6,  // ramfs
    0x794c7630,  // overlayfs: its upper layer cannot be NFS
    0xf2f52010,  // f2fs
    0xca451a4e,  // bcachefs
    0x3153464a,  // jfs
    0x52654973,  // reiserfs
    0x3434,      // nilfs2
    0x4d44,      // vfat
    0x2011bab0,  // exfat
    0x7366746e,  // ntfs3
    0x5346544e,  // ntfs
    0x9660,      // iso9660
    0x73717368,  // squashfs
    0xe0f5e1e2,  // erofs
};

}  // namespace

bool on_network_filesystem(const std::filesystem::path& path) {
  std::error_code ignored;
  auto at = std::filesystem::absolute(path, ignored);
  while (!std::filesystem::exists(at, ignored) && at.has_relative_path()) at = at.parent_path();
  struct statfs info {};
  if (::statfs(at.c_str(), &info) != 0) return true;
  return std::ranges::find(kLocal, static_cast<std::uint32_t>(info.f_type)) == kLocal.end();
}

}  // namespace sweep::store
