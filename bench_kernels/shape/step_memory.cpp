#include "bench_kernels/shape/step_memory.h"

#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/chunk_memory.h"
#include "bench_kernels/shape/schedule.h"

namespace sweep::shape {
namespace {

// Memory held while a micro-batch of one chunk is at work: others that are in flight, what other chunks keep, and
// gradients from the first backward on that makes them.
class InFlight {
 public:
  explicit InFlight(const std::vector<ChunkMemory>& chunks) : seen_(chunks.size()), most_(chunks.size()) {
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      seen_[c].saved = chunks[c].saved(), seen_[c].later = chunks[c].later();
      seen_[c].gradients = chunks[c].gradients();
      seen_[c].if_waits = chunks[c].idle(true, false).total();
      seen_[c].if_reduces = chunks[c].idle(false, true).total();
    }
  }
  std::vector<Others> run(const ActionList& actions, bool late) {
    for (const Action& action : actions) {
      const auto c = static_cast<std::size_t>(action.chunk);
      Seen& seen = seen_[c];
      if (action.act == Act::kForward) {
        note(c, seen.forward, most_[c].forward);
        held_ += seen.saved, ++seen.micros;
      } else if (action.act == Act::kBackward) {
        held_ += seen.saved.times(-1), --seen.micros;
        if (late)
          note(c, seen.input, most_[c].input), held_ += seen.later;
        else
          write_gradients(c);
      } else {
        held_ += seen.later.times(-1);
        write_gradients(c);
      }
      seen.reduces = action.act != Act::kForward;
    }
    for (std::size_t c = 0; c < seen_.size(); ++c) leave_out_first(c);
    return most_;
  }

 private:
  struct Seen {
    PartBytes saved, later, gradients;
    double if_waits = 0, if_reduces = 0;                 // buffers while another chunk is at work
    double forward = 0, input = 0, first = 0, next = 0;  // the most beside each of its actions
    i64 micros = 0;
    bool made = false;     // its gradients are there
    bool reduces = false;  // its last gradients are under way
  };
  void write_gradients(std::size_t c) {
    Seen& seen = seen_[c];
    Others& most = most_[c];
    if (seen.made) {
      most.adds = true;
      return note(c, seen.next, most.next);
    }
    most.makes = seen.made = true;
    note(c, seen.first, most.first);
    held_ += seen.gradients;
  }
  // Leaves out the first if a later one has more beside it than the first with all its gradients.
  void leave_out_first(std::size_t c) {
    Others& most = most_[c];
    if (most.adds && most.first.total() + seen_[c].gradients.total() <= most.next.total()) most.makes = false;
  }
  void note(std::size_t at_work, double& most_bytes, PartBytes& most) {
    double idle = 0;
    for (std::size_t c = 0; c < seen_.size(); ++c)
      if (c != at_work)
        idle += (seen_[c].micros > 0 ? seen_[c].if_waits : 0) + (seen_[c].reduces ? seen_[c].if_reduces : 0);
    if (seen_[at_work].micros > 0) most_[at_work].alone = false;
    const double bytes = held_.total() + idle;
    if (bytes <= most_bytes) return;
    most_bytes = bytes, most = held_;
    most[MemoryPart::kBuffers] += idle;
  }

  std::vector<Seen> seen_;
  std::vector<Others> most_;
  PartBytes held_;
};

RankMemory rank_memory(const Trial& t, const StepSizes& s, const Units& units,
                       const std::vector<StageShare>& shares, i64 rank) {
  Pipeline pipeline = Pipeline::of(t);
  std::vector<StageShare> held;
  std::vector<ChunkMemory> chunks;
  chunks.reserve(static_cast<std::size_t>(t.vpp));
  for (i64 c = 0; c < t.vpp; ++c) {
    held.push_back(shares[static_cast<std::size_t>(pipeline.stage(rank, c))]);
    chunks.emplace_back(t, s, units, ChunkParameters(t, s, held.back()));
  }
  PartBytes states, gradients, update, messages;
  for (const auto& chunk : chunks) {
    states += chunk.states(), gradients += chunk.gradients();
    keep_larger(update, chunk.optimizer());
  }
  states[MemoryPart::kTemporary] += real(t.grad_accum) * moments::micro_batch(s);
  if (s.kernels.gpu) states[MemoryPart::kLibrary] = library_workspace(t);
  std::vector<Others> others(1);
  others[0].makes = t.grad_accum == 1, others[0].adds = t.grad_accum > 1;
  if (t.grad_accum > 1)
    others[0].forward = others[0].input = others[0].next = gradients;  // they stay between micro-steps
  if (t.pp > 1) {
    pipeline.micros = micros_with_same_peak(pipeline);
    const ActionList actions = computations(pipeline, rank);
    others = InFlight(chunks).run(actions, s.weights.later);
  }
  PartBytes most = states + gradients + update;
  // Messages under way: to and from each neighbour.
  const double neighbours = (rank > 0 || t.vpp > 1 ? 1 : 0) + (rank + 1 < t.pp || t.vpp > 1 ? 1 : 0);
  if (t.pp > 1) messages[MemoryPart::kBuffers] = neighbours * block(s.residual());
  for (std::size_t c = 0; c < chunks.size(); ++c)
    keep_larger(most, states + messages + chunks[c].fullest(others[c]));
  if (t.eval_batch_size > 0) keep_larger(most, states + evaluation_memory(t, held, s.kernels.gpu));
  return {most, gradients.total()};
}

// Than the rank before it: neither is the first or the last, and they compute as many layers in each chunk. All
// schedules but zero_bubble, which puts weight gradients off, have as many micro-batches in flight on the
// earlier one.
bool holds_no_more(const Trial& t, const std::vector<StageShare>& shares, i64 rank) {
  if (rank < 2 || rank + 1 >= t.pp) return false;
  // With few micro-batches the fullest moment of the earlier one may be before there are gradients.
  if (t.schedule != Schedule::kGpipe && t.grad_accum < 3 * t.pp) return false;
  const Pipeline pipeline = Pipeline::of(t);
  for (i64 c = 0; c < t.vpp; ++c) {
    const StageShare& own = shares[static_cast<std::size_t>(pipeline.stage(rank, c))];
    const StageShare& before = shares[static_cast<std::size_t>(pipeline.stage(rank - 1, c))];
    if (own.layers != before.layers || own.dense_layers != before.dense_layers) return false;
  }
  return true;
}

}  // namespace

// 4096 KiB x 8 on compute capability 9.0 and 10.x, else 4096 KiB x 2 + 16 KiB x 8
// (at::cuda::getChosenWorkspaceSize without CUBLAS_WORKSPACE_CONFIG). Unknown hardware: the larger.
double library_workspace(const Trial& t) {
  const Hardware* hardware = known_hardware(t.hardware);
  const std::string capability = hardware ? hardware->compute_capability : "";
  const bool large = capability.empty() || capability == "9.0" || capability.starts_with("10.");
  return 1024 * (large ? 4096.0 * 8 : 4096.0 * 2 + 16 * 8);
}

std::vector<RankMemory> step_memory(const Trial& t, KernelPath path, Ranks which) {
  const StepSizes s(t, path);
  const auto shares = split_stages(t, t.pp * t.vpp);
  const Units units(t, s, ChunkParameters(t, s, shares.front()).weights);
  std::vector<RankMemory> ranks;
  for (i64 rank = 0; rank < t.pp; ++rank) {
    const bool skipped = which == Ranks::kFullest && !s.weights.later && holds_no_more(t, shares, rank);
    ranks.push_back(skipped ? RankMemory{} : rank_memory(t, s, units, shares, rank));
  }
  return ranks;
}

}  // namespace sweep::shape
