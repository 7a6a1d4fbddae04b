#include "bench_kernels/step/traffic_check.h"

#include <cmath>

#include "bench_kernels/shape/model_states.h"
#include "bench_kernels/shape/split_traffic.h"
#include "bench_kernels/shape/stage_split.h"

namespace sweep::step {
namespace {

using comm::Kind;
using shape::Dimension;

class TrafficCheck {
 public:
  TrafficCheck(const Trial& trial, const parallel::Mesh& mesh)
      : t_(trial), mesh_(mesh), stage_(mesh.place().pp) {}

  void splits() {
    if (t_.tp > 1) tensor();
    if (t_.cp > 1) {
      const auto formula = shape::context_traffic(t_, stage_);
      volume(Dimension::kContext, Kind::kSend, formula.send);
      volume(Dimension::kContext, Kind::kAllToAll, formula.all_to_all);
    }
    if (t_.pp > 1) {
      const auto formula = shape::pipeline_traffic(t_, stage_);
      volume(Dimension::kPipeline, Kind::kSend, {formula.sends, formula.bytes});
      same("pp recv calls", traffic(Dimension::kPipeline).calls_of(Kind::kRecv), formula.receives);
      volume(Dimension::kEnds, Kind::kAllReduce, shape::tied_traffic(t_, stage_));
    }
    if (t_.ep == 1) return;
    const auto formula = shape::expert_traffic(t_, stage_);
    volume(Dimension::kExpert, Kind::kAllToAll, formula.all_to_all, true, even());
    volume(Dimension::kExpert, Kind::kAllGather, formula.counts);
  }

  // Gradients and values of all chunks, the experts' load, and the one number that all ranks agree on.
  void states(const TrainStep& step) {
    shape::StateTraffic formula;
    shape::PipelinePlace place{stage_, 0};
    const auto real = [](i64 n) { return static_cast<double>(n); };
    for (const parallel::ModelState* state : step.states()) {
      const auto trained = state->count(false), frozen = state->count(true);
      formula += shape::state_traffic(t_, real(trained.all - trained.experts), real(trained.shared), place);
      formula += shape::expert_state_traffic(t_, real(trained.experts), place);
      formula += shape::frozen_traffic(t_, real(frozen.all - frozen.experts), real(frozen.shared), place);
      formula += shape::quantized_traffic(t_, real(frozen.quantized), real(frozen.quantized_experts), place);
      formula += shape::frozen_expert_traffic(t_, real(frozen.experts), place);
      ++place.chunk;
    }
    if (t_.spec.experts > 0)
      formula.all_reduce += static_cast<double>(shape::expert_traffic(t_, stage_).load.bytes);
    data(Kind::kAllReduce, formula.all_reduce);
    data(Kind::kReduceScatter, formula.reduce_scatter);
    data(Kind::kAllGather, formula.all_gather);
    // The ranks agree on one float64.
    const bool agrees = t_.world() > 1 && (t_.grad_clip || shape::scales_loss(t_));
    volume(Dimension::kWorld, Kind::kAllReduce,
           agrees ? shape::Volume{1, 2 * 8 * (t_.world() - 1) / t_.world()} : shape::Volume{});
  }

  std::vector<std::string> faults() && { return std::move(faults_); }

 private:
  void tensor() {
    const bool whole = !t_.tp_overlap;
    const auto formula = shape::tensor_traffic(t_, stage_);
    volume(Dimension::kTensor, Kind::kAllReduce, formula.all_reduce, whole);
    volume(Dimension::kTensor, Kind::kAllGather, formula.all_gather, whole);
    volume(Dimension::kTensor, Kind::kReduceScatter, formula.reduce_scatter, whole);
    const auto heads = shape::key_value_traffic(t_, stage_);
    volume(Dimension::kKeyValue, Kind::kAllGather, heads.all_gather);
    volume(Dimension::kKeyValue, Kind::kReduceScatter, heads.reduce_scatter);
  }

  // Whether a rank's positions choose each expert as often. With context parallelism they are two runs.
  bool even() const {
    const i64 run = t_.seq_len / (t_.cp > 1 ? 2 * t_.cp : 1);
    return t_.routing == Routing::kBalanced && run * t_.spec.experts_per_token % t_.spec.experts == 0;
  }
  const comm::Traffic& traffic(Dimension dimension) const { return mesh_[dimension].traffic(); }

  void same(const std::string& what, i64 counted, i64 formula) {
    expect_same(faults_, what, static_cast<double>(counted), static_cast<double>(formula));
  }
  void volume(Dimension dimension, Kind kind, const shape::Volume& formula, bool calls = true,
              bool bytes = true) {
    const std::string what = std::string(shape::name_of(dimension)) + " " + comm::name_of(kind);
    if (calls) same(what + " calls", traffic(dimension).calls_of(kind), formula.calls);
    if (bytes) same(what + " bytes", traffic(dimension).bytes_of(kind), formula.bytes);
  }
  // Over all the groups that share gradients and values.
  void data(Kind kind, double formula) {
    i64 bytes = 0;
    for (const auto dimension :
         {Dimension::kData, Dimension::kShard, Dimension::kReplicate, Dimension::kExpertData})
      bytes += traffic(dimension).bytes_of(kind);
    same(std::string("dp ") + comm::name_of(kind) + " bytes", bytes, static_cast<i64>(formula));
  }

  const Trial& t_;
  const parallel::Mesh& mesh_;
  i64 stage_;
  std::vector<std::string> faults_;
};

}  // namespace

void expect_same(std::vector<std::string>& faults, const std::string& what, double counted, double formula) {
  if (counted == formula) return;
  faults.push_back(what + ": " + std::to_string(std::llround(counted)) + " where the formula has " +
                   std::to_string(std::llround(formula)));
}

std::vector<std::string> traffic_faults(const Trial& trial, const parallel::Mesh& mesh,
                                        const TrainStep& step) {
  TrafficCheck check(trial, mesh);
  check.splits();
  check.states(step);
  return std::move(check).faults();
}

}  // namespace sweep::step
