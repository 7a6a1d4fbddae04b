// TrainerProfile: what a training program keeps in memory and what its steps cost, beyond what the configuration
// says: two models, by their names, and their numbers. JSON is its form on disk; those of profiles/ are built in.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace sweep::predict {

class MemoryModel;
class TimeModel;

// Which models read a number.
enum Reader : unsigned { kNanotron = 1, kEager = 2, kStep = 4, kAny = 7 };

#define SWEEP_NUMBER(name, readers, meaning) double name = 0;
struct MemoryParameters {
#define MEMORY_NUMBER SWEEP_NUMBER
#include "orchestrator/predict/profile_numbers.def"
#undef MEMORY_NUMBER
};

struct TimeParameters {
#define TIME_NUMBER SWEEP_NUMBER
#include "orchestrator/predict/profile_numbers.def"
#undef TIME_NUMBER
};

struct ProfileFacts {
#define FACT SWEEP_NUMBER
#include "orchestrator/predict/profile_numbers.def"
#undef FACT
};

struct Uncertainty {
#define ERROR_NUMBER SWEEP_NUMBER
#include "orchestrator/predict/profile_numbers.def"
#undef ERROR_NUMBER
};
#undef SWEEP_NUMBER

// Collective bandwidth in bytes/s by the number of nodes a group spans.
struct LinkTable {
  std::vector<double> nodes, all_reduce, all_gather;
};

// Where numbers come from. Each number of a profile has one.
struct Origin {
  std::vector<std::string> of;  // sections ("memory", "links"), or numbers of them ("facts.need_share")
  std::string how, rows, machine, date;
};

struct TrainerProfile {
  std::string name, hardware;
  const MemoryModel* memory_model = nullptr;  // null only in a profile that nothing was read into
  const TimeModel* time_model = nullptr;
  MemoryParameters memory;
  TimeParameters time;
  ProfileFacts facts;
  Uncertainty error;
  LinkTable links;
  std::vector<Origin> origins;

  // Numbers that have got another origin.
  void set_origin(Origin);
};

// The numbers of a section that the profile's models read: "memory", "time", "facts", "error".
std::vector<double*> numbers_of(TrainerProfile&, std::string_view section);

// The files of profiles/ by name; made at build time.
struct ProfileText {
  const char* name;
  const char* json;
};
std::span<const ProfileText> profile_texts();
// Absent: no profile of that name is built in.
const TrainerProfile* built_in_profile(std::string_view name);
// "fsdp2, nanotron, ..."
std::string built_in_profiles();

std::string to_json(const TrainerProfile&);
// Error: no JSON, an unknown model, a number that is missing, not finite or without an origin.
Expected<TrainerProfile> profile_from_json(std::string_view text);

}  // namespace sweep::predict
