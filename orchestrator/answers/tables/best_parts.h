// Shared by best_print.cpp and best_yaml.cpp: a group's name, and the comments above a winner's
// configuration.
#pragma once
#include <string>

#include "orchestrator/answers/statistics/best.h"

namespace sweep::answers {

std::string group_name(const BestOfGroup&, const BestOptions&);
// Each line a comment; where several configurations follow in one file, each has its own.
std::string winner_notes(const BestOfGroup&, const BestOptions&);

}  // namespace sweep::answers
