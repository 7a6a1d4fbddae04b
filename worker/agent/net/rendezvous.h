// RendezvousFolder: an allocation's folder on memory (/dev/shm), in which the attempts of its agent have
// theirs. Its owner holds a lock on a file in it for as long as it lives, so that any agent of the same user
// on this machine can tell a folder in use from one whose owner was killed. It removes its own folder and
// those of dead owners.
#pragma once
#include <filesystem>

#include "schema/trial.h"

namespace sweep::agent {

class RendezvousFolder {
 public:
  // Makes it; attempts go without where that fails.
  explicit RendezvousFolder(std::filesystem::path root);
  // Removes it.
  ~RendezvousFolder();
  RendezvousFolder(const RendezvousFolder&) = delete;
  RendezvousFolder& operator=(const RendezvousFolder&) = delete;
  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
  int lock_ = -1;
};

// A folder that is ours alone, made where it is missing: another user's folder of the same name is not used.
bool private_folder(const std::filesystem::path& path);

// Removes the folders in `home` whose owner is dead: its lock is free. One without a lock file is left alone,
// since nothing proves that its owner is dead. How many were removed.
i64 remove_dead_rendezvous(const std::filesystem::path& home);

}  // namespace sweep::agent
