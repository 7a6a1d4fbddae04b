// Announcement: something that one rank of a command learnt and all of them must know. Ranks of a node tell each
// other by a file. Where there are several nodes, the first rank of each also tells the others by the attempt's
// rendezvous store. Once told it stays so.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/store_client.h"
#include "schema/rank_launch.h"

namespace sweep::command {

class Announcement {
 public:
  // launch: with the rank's place on its node (local_rank).
  Announcement(const RankLaunch&, const std::string& name);

  // False: it could not be told.
  bool tell();
  // Is called every 100 ms or so; the store is asked more rarely, or at once.
  bool is_told(bool at_once = false);
  // Seconds from the moment one rank tells it until every rank had time to learn of it.
  double settle_s() const;

 private:
  bool ask(bool at_once);
  StoreClient* store(bool at_once);
  bool not_answered();

  std::string address_, key_;
  std::filesystem::path file_;
  bool carries_;  // this rank tells and asks the other nodes, for all ranks of its node
  bool told_ = false, failed_ = false;
  std::optional<StoreClient> store_;
  bool connected_ = false;
  double next_s_ = 0;
};

}  // namespace sweep::command
