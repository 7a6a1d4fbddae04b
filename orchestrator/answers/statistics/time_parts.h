// The parts of a step's time: they do not overlap, and follow from the overlapping times that were measured. A rank records
// how long it waited for communication, not in which part. Gradients are waited for in backward, so it is taken out of
// backward first, then out of forward and the update. Where forward and backward gather values (ZeRO 3, offload of
// parameters), it is taken out of both by their lengths.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "schema/records.h"
#include "schema/trial.h"

namespace sweep::answers {

inline constexpr std::array<const char*, 6> kTimeParts = {"forward",   "backward", "communication waited for",
                                                          "optimizer", "bubble",   "other"};
inline constexpr std::size_t kForwardPart = 0, kBackwardPart = 1, kWaitedPart = 2, kBubblePart = 4;

// Milliseconds of a trial's step, one for each of kTimeParts; nullopt: step, forward or backward were not measured.
std::optional<std::vector<double>> time_parts(const Metrics&, const Trial&);

// The mean over the timed steps of one rank, as metrics of it alone: step, forward, backward, optimizer, exposed
// communication, and with `pipeline` the share that it waited for other stages. Absent times: it timed none.
Metrics rank_times(const RankRecord&, bool pipeline);

}  // namespace sweep::answers
