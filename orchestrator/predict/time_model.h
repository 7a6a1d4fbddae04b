// TimeModel: what a step of a trainer costs, by shares of what the hardware can do. A profile names its model and
// gives the shares. By itself it is no trainer's own: stages of equal length. What one cluster showed beside it are the
// effects and the residual of a profile.
#pragma once
#include <string_view>
#include <vector>

#include "orchestrator/predict/memory_model.h"

namespace sweep::predict {

struct TimePrediction {
  double step_s = 0;
  double compute_s = 0, pipeline_s = 0, data_parallel_s = 0, optimizer_s = 0, slow_messages_s = 0,
         retry_s = 0;
  double tokens_per_s_gpu = 0;
  double residual = 1;        // the factor of the cluster's measurements, in all parts
  void scale(double factor);  // all parts
};

// Seconds of a layer that its collectives of tensor parallelism take beside their bytes: of the GPU, of the host, and those
// that both wait.
struct CollectiveStarts {
  double gpu = 0, host = 0, both = 0;
};

class TimeModel {
 public:
  TimeModel(const char* word, Reader reader) : word(word), reader(reader) {}
  virtual ~TimeModel() = default;
  // The stages of a pipeline as the trainer divides the model.
  virtual void divide(const Trial&, std::vector<StageWork>&) const;
  void stage_times(const Layout&, const TrainerProfile&, const shape::Hardware&, StageTimes& out) const;
  TimePrediction seconds(const Case&, const MemoryPrediction&) const;
  // The same without the residual.
  TimePrediction plain_seconds(const Case&, const MemoryPrediction&) const;
  // The error of a profile that says how far such a layout's time spreads.
  double Uncertainty::*spread(const Layout&) const;
  // So many collectives of `tp` ranks over `span` nodes. By default the program waits for each.
  virtual CollectiveStarts starts(const TimeParameters&, double calls, double tp, double span) const;
  virtual double head_share(const TimeParameters& t) const { return t.head_share; }

  const std::string_view word;  // its name in a profile
  const Reader reader;          // which of a profile's numbers it reads
};

const TimeModel& nanotron_time();
// Null: no model has this name.
const TimeModel* time_model(std::string_view word);

}  // namespace sweep::predict
