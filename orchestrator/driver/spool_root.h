// The folder of the spools, beside the database: agents obey what is in it, and what they write there is stored.
#pragma once
#include <filesystem>

#include "base/expected.h"

namespace sweep::driver {

// FILE.spool, absolute; of a link, that of the file behind it.
std::filesystem::path spool_root_of(const std::filesystem::path& db);
// Makes the folder where it is missing. Error: another user made or can change it, or the link at its place. Trusted
// are this user and the owner of the database.
Expected<void> prepare_spool_root(const std::filesystem::path& root, const std::filesystem::path& db);

}  // namespace sweep::driver
