// From an exception to the outcome a rank testifies: the only place that does. Decided by type, never by
// message.
#pragma once
#include "schema/records.h"

namespace sweep::rank {

// REQUIRES: called inside a catch block. Sets outcome, oom_kind, consequential and message of the record from
// the exception being handled:
//   c10::OutOfMemoryError       oom (device)
//   std::bad_alloc              oom (host)
//   c10::NotImplementedError    unsupported
//   c10::DistError              crash, consequential: a peer ended, aborted or is late
//   anything else               crash
void testify_exception(RankRecord&);

}  // namespace sweep::rank
