// OutboxReader: takes in what an allocation's agent wrote. One transaction stores the records and the results
// of a chunk of its outbox, with the read offset; then the launcher may forget those bytes. It says what
// follows for the allocation and for the run, and does neither.
#pragma once
#include <optional>
#include <string>

#include "orchestrator/run/dispatch.h"
#include "orchestrator/run/excluded_hosts.h"
#include "orchestrator/run/held_allocation.h"
#include "orchestrator/run/run_context.h"

namespace sweep::run {

class OutboxReader {
 public:
  OutboxReader(const RunContext& context, Dispatch& dispatch, ExcludedHosts& hosts)
      : context_(context), dispatch_(dispatch), hosts_(hosts) {}

  struct Effects {
    // Attempts ended; at least one of them was not cancelled.
    bool finished = false, results = false;
    // The allocation gets no more work.
    bool finish = false;
    // Why the run ends: a node is not the hardware that the trials declare.
    std::optional<std::string> wrong_node;
    // Hosts that get no more work: allocations of one of them end.
    std::vector<std::string> unfit_hosts{};
  };
  // run_ends: the run loop is ending its allocations.
  Expected<Effects> process(HeldAllocation&, const launch::Outbox&, bool run_ends);
  // Finishes the attempts that an ended allocation left unfinished.
  Expected<void> close_unfinished(HeldAllocation&, const launch::Ended&, bool run_ends);

 private:
  Expected<void> on_node(HeldAllocation&, const NodeRecord&, bool run_ends, Effects&);
  Expected<void> on_node_out(HeldAllocation&, const NodeOut&, bool run_ends, Effects&);
  // Ends the trust in a host, in later runs too.
  Expected<void> exclude(const std::string& host, const std::string& why);
  Expected<void> judge_host(const HeldAllocation&, const FinishedAttempt&, Effects&);
  Expected<void> on_slow(const std::string& host, const NodeRecord&);
  Expected<void> on_finished(HeldAllocation&, const FinishedAttempt&, bool run_ends, Effects&);
  Expected<void> on_cancelled(HeldAllocation&, const FinishedAttempt&, bool run_ends, Effects&);
  Expected<void> on_unclean(const HeldAllocation&, const AttemptEnd&, Effects&);
  Expected<void> note_quarantine(const std::vector<std::string>& sentences, std::optional<i64> attempt = {});

  const RunContext& context_;
  Dispatch& dispatch_;
  ExcludedHosts& hosts_;
};

}  // namespace sweep::run
