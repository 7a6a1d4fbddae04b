#include "orchestrator/store/profile_shelf.h"

#include "orchestrator/store/store_file.h"

namespace sweep::store {

Expected<void> ProfileShelf::save_hardware_profile(const ProfileRow& row) {
  Transaction work(*file_.db, Transaction::kWrite);
  work.run(
      "INSERT OR REPLACE INTO hardware_profile(name, hardware, created_unix_ns, profile) VALUES (?, ?, ?, ?)",
      row.name, row.hardware, row.created_unix_ns != 0 ? row.created_unix_ns : file_.leases.now(),
      row.profile);
  return work.commit();
}

Expected<bool> ProfileShelf::remove_hardware_profile(const std::string& name) {
  Transaction work(*file_.db, Transaction::kWrite);
  work.run("DELETE FROM hardware_profile WHERE name = ?", name);
  const bool removed = work.changes() > 0;
  return work.commit(removed);
}

Expected<std::vector<ProfileRow>> ProfileShelf::hardware_profiles() {
  Transaction work(*file_.db, Transaction::kRead);
  std::vector<ProfileRow> out;
  auto rows =
      work.rows("SELECT name, hardware, created_unix_ns, profile FROM hardware_profile ORDER BY name");
  while (rows.next())
    out.push_back(
        {rows.get<std::string>(0), rows.get<std::string>(1), rows.get<i64>(2), rows.get<std::string>(3)});
  return work.commit(std::move(out));
}

}  // namespace sweep::store
