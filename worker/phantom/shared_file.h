// Shared files of this user's phantoms, in /dev/shm. A file that no process has open any more is left over,
// and whoever opens one of its kind removes it.
#pragma once
#include <cstddef>
#include <string>

namespace sweep::phantom {

// "/dev/shm/sweep-phantom-UID-": the beginning of their names.
std::string shared_prefix();

struct SharedFile {
  int fd = -1;
  void* at = nullptr;  // mapped; null: the system refused, and it was said on stderr
};
SharedFile open_shared(const std::string& path, std::size_t bytes);

// The same file for a forked child: its locks are its own, not shared with its parent. -1: it cannot be had.
int reopened(int fd);

// Removes files of this kind (the word after the user's number in their names) that no process has open.
void remove_left_over(const std::string& kind);

}  // namespace sweep::phantom
