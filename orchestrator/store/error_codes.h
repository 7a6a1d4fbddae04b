// Codes of databases and of questions to them. The subject is the file, column, word or parameter that is
// wrong.
#pragma once
#include "base/expected.h"

namespace sweep::codes {

// The file.
inline constexpr ErrorCode kNoDatabase{"store.no_database"};  // there is no such file
inline constexpr ErrorCode kNotADatabase{"store.not_a_database"};
inline constexpr ErrorCode kNewerVersion{"store.newer_version"};
inline constexpr ErrorCode kDamaged{"store.damaged"};
inline constexpr ErrorCode kIoError{"store.io_error"};
inline constexpr ErrorCode kLocked{"store.locked"};
inline constexpr ErrorCode kLogNotFolded{"store.log_not_folded"};  // a copy of the file alone lacks results
inline constexpr ErrorCode kNotWritable{"store.not_writable"};
inline constexpr ErrorCode kUnknownWord{"store.unknown_word"};  // a value of an axis, of a later version
inline constexpr ErrorCode kUnknownColumn{"store.unknown_column"};

// Sweeps in it.
inline constexpr ErrorCode kHeld{"store.held"};         // another process runs this sweep
inline constexpr ErrorCode kNoLease{"store.no_lease"};  // this process has not taken it
inline constexpr ErrorCode kLeaseLost{"store.lease_lost"};
inline constexpr ErrorCode kUnknownSweep{"store.unknown_sweep"};
inline constexpr ErrorCode kUnknownTrial{"store.unknown_trial"};
inline constexpr ErrorCode kAmbiguousTrial{"store.ambiguous_trial"};
inline constexpr ErrorCode kBadTrialId{"store.bad_trial_id"};
inline constexpr ErrorCode kUnknownAllocation{"store.unknown_allocation"};
inline constexpr ErrorCode kRunHere{"store.run_here"};              // so nothing is imported into it
inline constexpr ErrorCode kReadOtherwise{"store.read_otherwise"};  // these lines were imported before
inline constexpr ErrorCode kSameFile{"store.same_file"};            // merged into itself
inline constexpr ErrorCode kOtherTrial{"store.other_trial"};        // one id, two configurations

// Questions.
inline constexpr ErrorCode kUnknownMetric{"store.unknown_metric"};
inline constexpr ErrorCode kBadSql{"store.bad_sql"};
inline constexpr ErrorCode kParameter{"store.parameter"};  // without a value, or not in the SQL
inline constexpr ErrorCode kAnswerTooLarge{"store.answer_too_large"};

}  // namespace sweep::codes
