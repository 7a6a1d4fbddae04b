// GroupRoles: the ranks of a communicator and, where only some of them are started, which of those does the part of
// each other one. Pure.
#pragma once
#include <vector>

namespace sweep::phantom {

class GroupRoles {
 public:
  static constexpr int kNobody = -1;
  // stand_ins: for each rank of the group the started rank that does its part, itself where it is started. kNobody: no
  // started rank of this group stands for it. In collectives the first started rank does its part then; it cannot send or
  // receive messages.
  explicit GroupRoles(std::vector<int> stand_ins);
  static GroupRoles all_started(int ranks);
  static GroupRoles alone(int ranks, int rank);

  int ranks() const { return static_cast<int>(places_.size()); }
  int started() const { return static_cast<int>(started_.size()); }
  // The place, among the started ranks, of the one that does this rank's part.
  int place(int rank) const { return places_[static_cast<std::size_t>(rank)]; }
  int rank_at(int place) const { return started_[static_cast<std::size_t>(place)]; }
  bool has_started(int rank) const { return rank_at(place(rank)) == rank; }
  // Nobody does its part, so it can send and receive nothing.
  bool is_stray(int rank) const { return stray_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<int> places_, started_;
  std::vector<bool> stray_;
};

}  // namespace sweep::phantom
