// Fitter: moves the numbers of a profile towards measured rows.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "orchestrator/predict/fit.h"
#include "orchestrator/predict/time_model.h"

namespace sweep::predict {

// Robust least squares: Levenberg-Marquardt with numerical derivatives and the soft-L1 loss.
using Vector = std::vector<double>;
// Residuals of all rows at x.
using Residuals = std::function<void(const Vector& x, Vector& out)>;

// The x near `start` with the least loss; residuals beyond `scale` count linearly.
Vector least_squares(const Residuals&, Vector start, double scale, int most_rounds);
// How far each number at such an x may be off where a residual's deviation is `scale`.
Vector deviations(const Residuals&, const Vector& x, double scale);

bool states_time(const MeasuredRow&);
bool states_memory(const MeasuredRow&);

class Fitter {
 public:
  Fitter(TrainerProfile start, std::span<const MeasuredRow> rows, const shape::Hardware& h,
         std::vector<std::string> held = {});

  void run();
  TrainerProfile& profile() { return p_; }
  // The rows state enough of it, and the profile has such numbers.
  bool fits_time() const { return fits_time_; }
  bool fits_memory() const { return fits_memory_; }
  // ln(predicted / measured), with and without the residual; predicted / measured - 1.
  double time_off(const MeasuredRow&);
  double plain_time_off(const MeasuredRow&);
  double memory_off(const MeasuredRow&);
  double needed(const MeasuredRow&);
  // The doubt of each number that remains after the rows.
  std::vector<double> time_doubt();

 private:
  struct Section {
    const char* name;
    bool logarithms;
    double scale;
    int rounds;
    void (Fitter::*residuals)(Vector& out);
  };
  static const Section kTime, kMemory;

  void fit(const Section&);
  Residuals residuals_at(const Section&);
  Vector place(const Section&, const TrainerProfile&) const;
  void time_residuals(Vector& out);
  void memory_residuals(Vector& out);
  void fit_residual();
  Case case_of(const MeasuredRow&);
  MemoryPrediction bytes_of(const MeasuredRow&, const Case&);

  TrainerProfile start_, p_;
  std::span<const MeasuredRow> rows_;
  const shape::Hardware& h_;
  std::vector<std::string> held_;
  bool fits_time_ = false, fits_memory_ = false;
  StageTimes times_;
  std::vector<std::optional<MemoryPrediction>> known_;  // predictions of our own step, which no number moves
};

}  // namespace sweep::predict
