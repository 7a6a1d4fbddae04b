// A rank of a command on phantom GPUs (docs/phantom.md): where a rehearsal places it, and what the phantoms
// counted of it.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "schema/attempt.h"
#include "schema/rank_launch.h"
#include "schema/records.h"

namespace sweep::command {

// Whether this process runs on phantom GPUs.
bool on_phantoms();

// The ranks of all nodes of a rehearsal are on this one: its place among those of its own node.
i64 local_rank_of(const Attempt&, const RankLaunch&);

// Variables of the rank's program; empty where there are no phantoms. The programs of a node see a phantom
// node of their own, with as many GPUs as the trial has. Where not every rank is started, each knows which are
// (roles.py).
std::map<std::string, std::string> phantom_variables(const Attempt&, const RankLaunch&);

// The signal on which phantoms write their counters: a program that is killed writes none at its end.
int phantom_counters_signal();

// The counters of phantom GPUs for this rank's program; nullopt: it used none.
std::optional<PhantomUse> phantom_counters(const RankLaunch&);

// A crash on phantom GPUs, by what they counted of the program: a call that they do not answer makes it
// unsupported, which no retry changes; any other is told with what phantoms do not compute.
void explain_on_phantoms(RankRecord&);

}  // namespace sweep::command
