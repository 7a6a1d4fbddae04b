// ProfileShelf: the hardware profiles of a database, as text. It keeps the latest under each name and reads
// none of them.
#pragma once
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/integers.h"

namespace sweep::store {

struct StoreFile;

struct ProfileRow {
  std::string name, hardware;
  i64 created_unix_ns = 0;
  std::string profile;  // JSON
};

class ProfileShelf {
 public:
  explicit ProfileShelf(StoreFile& file) : file_(file) {}

  // Replaces one of the same name. created_unix_ns 0: now.
  Expected<void> save_hardware_profile(const ProfileRow&);
  // False: there is none of this name.
  Expected<bool> remove_hardware_profile(const std::string& name);
  // The profiles by name.
  Expected<std::vector<ProfileRow>> hardware_profiles();

 private:
  StoreFile& file_;
};

}  // namespace sweep::store
