// Codes of what a machine lacks for a rehearsal (the subject is the file, or what there is too little of), and of
// folders.
#pragma once
#include "base/expected.h"

namespace sweep::driver::codes {

inline constexpr ErrorCode kNoPhantoms{"rehearse.no_phantoms"};
inline constexpr ErrorCode kNoRank{"rehearse.no_rank"};  // sweep-rank does not answer
inline constexpr ErrorCode kNoCuda{"rehearse.no_cuda"};  // in its LibTorch
inline constexpr ErrorCode kNoPlugin{"rehearse.no_plugin"};
inline constexpr ErrorCode kUnsafeSpool{"run.unsafe_spool"};  // another user can write there
inline constexpr ErrorCode kTooLittle{"rehearse.too_little"};

}  // namespace sweep::driver::codes
