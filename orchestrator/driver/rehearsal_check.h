// Whether this machine can rehearse: what `sweep doctor` says and `sweep run --rehearse` refuses by.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "base/expected.h"
#include "schema/records.h"

namespace sweep::driver {

inline constexpr i64 kRehearsedRanks =
    8;  // up to this many ranks of a trial, all are started, unless --rehearse-ranks says otherwise

// Beside the programs' folder.
std::filesystem::path phantom_dir();

struct RehearsalFacts {
  std::filesystem::path phantoms;          // the folder of the phantom libraries
  std::string missing;                     // the first of them that is not there; empty: none
  bool built_in = true;                    // the built-in step is rehearsed: sweep-rank is needed
  Expected<RankFacts> rank = RankFacts();  // the answer of `sweep-rank facts`
  std::optional<double> shm_free_bytes, memory_free_bytes;  // nullopt: not known
};

// An empty path: commands alone are rehearsed.
RehearsalFacts rehearsal_facts(const std::filesystem::path& rank_program);

// Why trials of `ranks` ranks cannot be rehearsed, and what to do; nullopt: they can.
std::optional<Error> cannot_rehearse(const RehearsalFacts&, i64 ranks);

}  // namespace sweep::driver
