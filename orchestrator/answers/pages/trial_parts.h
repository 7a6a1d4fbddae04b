// Parts of the page of one trial, private to answers/: each gives the inside of one section as HTML; empty: there is
// nothing to show.
#pragma once
#include <string>

#include "orchestrator/answers/pages/trial_page.h"

namespace sweep::answers::parts {

std::string step_by_rank(const TrialPage&);
std::string pipeline_schedule(const TrialPage&);
std::string steps(const TrialPage&);
std::string load(const TrialPage&);
std::string nodes(const TrialPage&);
std::string ranks(const TrialPage&);
std::string effective_settings(const TrialPage&);

}  // namespace sweep::answers::parts
