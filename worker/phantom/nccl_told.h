// A program of which only some ranks are started tells its groups here, before it makes their communicators.
#pragma once
#include <nccl.h>

#include <optional>
#include <string>

#include "worker/phantom/group_roles.h"

namespace sweep::phantom {

struct ToldGroup {
  int rank = -1;  // this process's place in it; -1: in none
  int nodes = 1;  // nodes that it spans; 0: its ranks say so, and all of them come
  GroupRoles roles = GroupRoles::all_started(0);
};

// A communicator's name, by its id.
std::string name_of(const ncclUniqueId& id);
// The words about the group with this id; nullopt: there are none.
std::optional<ToldGroup> told_group(const ncclUniqueId& id);
// The group that the program makes next, by a split.
std::optional<ToldGroup> next_told_group();
// The number of nodes that the mirrored ranks of a new communicator lie on; 0: all its ranks are real.
int mirrored_on_nodes();

}  // namespace sweep::phantom
