// TrainerProfile: what a training program keeps in memory and what its steps cost, beyond what the configuration
// says: two models, by their names, and their numbers. JSON is its form on disk; those of profiles/ are built in.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "orchestrator/predict/effects.h"
#include "orchestrator/predict/residual.h"

namespace sweep::predict {

class MemoryModel;
class TimeModel;

// The models that read a number.
enum Reader : unsigned { kNanotron = 1, kEager = 2, kStep = 4, kAny = 7 };

#define SWEEP_NUMBER(name, readers, meaning) double name = 0;
#define SWEEP_FLAG(name, readers, meaning) bool name = false;
#define SWEEP_FITTED(name, readers, doubt, meaning) double name = 0;
struct MemoryParameters {
#define MEMORY_NUMBER SWEEP_FITTED
#include "orchestrator/predict/profile_numbers.def"
#undef MEMORY_NUMBER
};

struct TimeParameters {
#define TIME_NUMBER SWEEP_FITTED
#include "orchestrator/predict/profile_numbers.def"
#undef TIME_NUMBER
};

struct ProfileFacts {
#define FACT SWEEP_NUMBER
#define FLAG SWEEP_FLAG
#include "orchestrator/predict/profile_numbers.def"
#undef FLAG
#undef FACT
};

struct Uncertainty {
#define ERROR_NUMBER SWEEP_NUMBER
#include "orchestrator/predict/profile_numbers.def"
#undef ERROR_NUMBER
};
#undef SWEEP_NUMBER
#undef SWEEP_FLAG
#undef SWEEP_FITTED

// Collective bandwidth in bytes/s by the number of nodes a group spans.
struct LinkTable {
  std::vector<double> nodes, all_reduce, all_gather;
};

// The origin of numbers. Each number of a profile has one.
struct Origin {
  std::vector<std::string> of;  // sections ("memory", "links"), or numbers of them ("facts.need_share")
  std::string how, rows, machine, date;
};

struct TrainerProfile {
  std::string name, hardware;
  std::vector<std::string>
      trainers;  // recipes of the program (orchestrator/interop) and their trainers; none: the built-in step
  std::vector<std::string> rules;  // refusals of the program (rule_words()); the step's own are the plan's
  const MemoryModel* memory_model = nullptr;  // null only in a profile that nothing was read into
  const TimeModel* time_model = nullptr;
  MemoryParameters memory;
  TimeParameters time;
  ProfileFacts facts;
  Uncertainty error;
  LinkTable links;
  std::vector<Effect> effects;
  TimeResidual residual;
  std::vector<Origin> origins;

  // Whether it is of the trainer, by the name of its recipe or its own; case does not count.
  bool is_of(std::string_view trainer) const;
  // The origin of "time"; null: it has none for all of them.
  const Origin* origin_of(const std::string& section) const;
  // Numbers that have got another origin.
  void set_origin(Origin);
  // Makes it a profile of other hardware: what rows of its own said of links, and of scores that attention writes out,
  // is not known there. Scores that the trainer keeps are written on any hardware.
  void move_to(const std::string& other, const std::string& date);
};

// The numbers of a section that the profile's models read: "memory", "time", "facts", "error".
std::vector<double*> numbers_of(TrainerProfile&, std::string_view section);
std::vector<std::string> names_of(const TrainerProfile&, std::string_view section);
// How far the numbers of a section ("memory", "time") may be from a start's (profile_numbers.def). A number that is
// held by its name has next to no room.
std::vector<double> doubts_of(const TrainerProfile&, std::string_view section,
                              const std::vector<std::string>& held = {});

// The files of profiles/ by name; made at build time.
struct ProfileText {
  const char* name;
  const char* json;
};
std::span<const ProfileText> profile_texts();
// Null: no profile of that name is built in. Each is read when it is first asked for.
const TrainerProfile* built_in_profile(std::string_view name);
// The profile of a trainer, by the name of its recipe or its own: one that was measured on this hardware before another. "" is the
// built-in step. Null: no profile is this trainer's.
const TrainerProfile* profile_of_trainer(std::string_view trainer, std::string_view hardware);
// "fsdp2, nanotron, ..."
std::string built_in_profiles();

std::string to_json(const TrainerProfile&);
// With `extends`, the name of a built-in profile, the text says only what differs from that one.
// Error: no JSON, an unknown base, model or key, a number or flag that is missing, out of range or without an origin.
Expected<TrainerProfile> profile_from_json(std::string_view text);

}  // namespace sweep::predict
