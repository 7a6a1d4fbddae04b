// Pipeline: the stages that one rank holds, run as the schedule's list of actions says (shape/schedule.h). It
// owns stages, their states, the micro-batches in flight and the messages under way. One rank without peers
// is a pipeline of one stage: there is no other way through a step. It knows nothing of batches and of time;
// whoever does watches.
//
// Every buffer comes and goes at a fixed place of the list, never when a peer happens to be ready: a
// receive's is there from its post to the end of its chunk's backward, a send's until the rank's next send to
// the same peer.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "bench_kernels/model/stage.h"
#include "bench_kernels/parallel/mesh.h"
#include "bench_kernels/parallel/model_state.h"
#include "bench_kernels/parallel/step_graphs.h"
#include "bench_kernels/shape/schedule.h"
#include "schema/trial.h"

namespace sweep::parallel {

class Pipeline {
 public:
  // The mesh must outlive the pipeline. micros: how many of the trial's micro-batches run (fewer in a dry
  // run).
  Pipeline(const Trial&, const model::Options&, const Mesh&, i64 micros, optim::OptimizerOptions = {});
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // So many run from now on.
  void set_micros(i64);

  enum class Moment { kWaitBegins, kWaitEnds, kBegins, kEnds };
  // Told of each wait for a peer and of each computation, from the calling thread.
  using Watch = std::function<void(Moment, shape::Act)>;
  // Forward and backward of all micro-batches; micro(i) is the i-th. Gradients are complete but for
  // finish_gradients().
  void run(const std::function<model::MicroBatch(i64)>& micro, const Watch&);
  // Waits for what backward did not hide: gradients are then the average over all tokens of the step.
  void finish_gradients();
  // Forward and backward are launched as graphs: nothing within them can be timed, and they end with all averages.
  bool as_graphs() const { return graphs_ != nullptr; }

  // Forward of one micro-batch, of any size, stage after stage; nothing is kept. Gradients stay as they are.
  void evaluate(const model::MicroBatch& micro, const std::function<void(bool waits)>& watch);

  // One part per chunk, in order of their stages.
  struct Part {
    Part(const Trial&, const model::Options&, const Mesh&, const model::Chunk&, optim::OptimizerOptions);
    model::Stage stage;
    ModelState state;
  };
  std::vector<std::unique_ptr<Part>>& parts() { return parts_; }
  const std::vector<std::unique_ptr<Part>>& parts() const { return parts_; }
  std::vector<const ModelState*> states() const;
  // Whether this rank computes the loss.
  bool has_head() const { return place_ == plan_.ranks - 1; }

 private:
  struct Message {
    at::Tensor tensor;
    comm::Pending pending;
  };
  struct Flight {                  // one chunk and micro-batch in flight
    Message activation, gradient;  // messages on the way in
    at::Tensor result;             // the message on the way out
    model::Stage::Tape tape;
    model::Stage::Later later;  // second part of a split backward
  };
  Flight& flight(const shape::Action& a) {
    return flights_[static_cast<std::size_t>(a.chunk * plan_.micros + a.micro)];
  }
  Part& part(const shape::Action& a) { return *parts_[static_cast<std::size_t>(a.chunk)]; }
  void compute(const shape::Action&, const model::MicroBatch&, const Watch&);
  void work(const shape::Action&, const model::MicroBatch&);
  void work_as_graph(const shape::Action&, const model::MicroBatch&);
  void backward(const shape::Action&, const model::MicroBatch&);
  void begin_gradients(const shape::Action&);
  void post_send(const shape::Action&, const Watch&);
  void post_receive(const shape::Action&);
  void wait(comm::Pending&, const shape::Action&, const Watch&);

  shape::Pipeline plan_;
  comm::Channel& channel_;
  i64 place_ = 0;  // this rank's in the pipeline
  shape::ActionList actions_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::unique_ptr<StepGraphs> graphs_;  // null: each operation is launched by itself
  std::vector<i64> backwards_left_;     // backwards left that write gradients, per chunk
  std::vector<Flight> flights_;
  std::map<i64, comm::Pending> sends_;  // the last one to each peer
  std::vector<i64> message_shape_;
  i64 rows_split_ = 1;  // ranks of the tensor group that share the rows of a message
  at::TensorOptions message_options_;
};

}  // namespace sweep::parallel
