#include "orchestrator/predict/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/predict/least_squares.h"
#include "orchestrator/predict/predict.h"

namespace sweep::predict {
namespace {

constexpr std::size_t kFewestRows = 30;
constexpr double kTimeScale = 0.1, kMemoryScale = 0.03, kMostWronglyRefused = 0.005;
// Of the shipped rows, those of a left-out cell lie within in nine of ten cases when the fit's error is
// widened by this.
constexpr double kUnseen = 1.2;

class Fitter {
 public:
  Fitter(TrainerProfile start, std::span<const MeasuredRow> rows, const shape::Hardware& h)
      : p_(std::move(start)), rows_(rows), h_(h) {}

  TrainerProfile run() {
    for (int round = 0; round < 2; ++round) fit_time(), fit_memory();
    fit_time();
    move_limit();
    measure_errors();
    return p_;
  }

 private:
  static bool counts(const MeasuredRow& row) { return row.ran && row.step_s > 0 && row.reported_bytes > 0; }

  void fit_time() {
    const auto table = time_parameters();
    Vector x;
    for (const auto& p : table) x.push_back(std::log(p_.time.*(p.member)));
    const auto take = [&](const Vector& from) {
      for (std::size_t i = 0; i < table.size(); ++i)
        p_.time.*(table[i].member) = std::exp(std::clamp(from[i], -30.0, 30.0));
    };
    take(least_squares([&](const Vector& at, Vector& out) { take(at), out = time_residuals(); }, x,
                       kTimeScale, 40));
  }

  void fit_memory() {
    const auto table = memory_parameters();
    Vector x;
    for (const auto& p : table) x.push_back(p_.memory.*(p.member));
    const auto take = [&](const Vector& from) {
      for (std::size_t i = 0; i < table.size(); ++i) p_.memory.*(table[i].member) = from[i];
    };
    take(least_squares([&](const Vector& at, Vector& out) { take(at), out = memory_residuals(); }, x,
                       kMemoryScale, 60));
  }

  Vector time_residuals() {
    Vector out;
    for (const auto& row : rows_) {
      if (!counts(row)) continue;
      stage_times(row.layout, p_, h_, times_);
      const auto memory = predict_memory(row.layout, times_, p_, h_);
      out.push_back(std::log(predict_time(row.layout, times_, memory, p_, h_).step_s / row.step_s));
    }
    return out;
  }

  Vector memory_residuals() {
    Vector out;
    for (const auto& row : rows_) {
      if (!counts(row)) continue;
      stage_times(row.layout, p_, h_, times_);
      const auto memory = predict_memory(row.layout, times_, p_, h_);
      const double most =
          h_.memory_bytes ? p_.facts.reserved_share * static_cast<double>(*h_.memory_bytes) : 1e300;
      out.push_back(std::min(memory.parts.reserved(), most) / p_.facts.reported_unit / row.reported_bytes -
                    1);
    }
    return out;
  }

  // As low as rows that ran allow: what lies above is predicted as out of memory.
  void move_limit() {
    if (!h_.memory_bytes) return;
    Vector ran;
    std::size_t refused = 0, failed = 0, count = 0;
    for (const auto& row : rows_) {
      failed += !row.ran, count += row.ran;
      if (!row.ran) continue;
      if (refusal(row.layout, p_)) {
        ++refused;
        continue;
      }
      stage_times(row.layout, p_, h_, times_);
      ran.push_back(predict_memory(row.layout, times_, p_, h_).need);
    }
    if (failed < kFewestRows || count < kFewestRows) return;
    std::ranges::sort(ran, std::greater<>());
    const auto allowed = static_cast<std::size_t>(kMostWronglyRefused * static_cast<double>(count));
    const std::size_t beyond = allowed > refused ? allowed - refused : 0;
    if (beyond < ran.size())
      p_.facts.need_share = (ran[beyond] * (1 + 1e-9)) / static_cast<double>(*h_.memory_bytes);
  }

  // Of the rows of each kind; of all where a kind has few. Rows that the fit has seen lie nearer than others.
  void measure_errors() {
    using Kind = double Uncertainty::*;
    const auto of = [&](const Vector& residuals, std::initializer_list<Kind> kinds, const auto& kind_of) {
      for (const Kind kind : kinds) {
        Vector own;
        std::size_t i = 0;
        for (const auto& row : rows_)
          if (counts(row)) {
            if (kind_of(row.layout) == kind) own.push_back(residuals[i]);
            ++i;
          }
        p_.error.*kind = kUnseen * ninth_of_ten(own.size() < kFewestRows ? residuals : own);
      }
    };
    of(memory_residuals(), {&Uncertainty::memory, &Uncertainty::memory_tensor}, memory_kind);
    of(time_residuals(), {&Uncertainty::time, &Uncertainty::time_far, &Uncertainty::time_many}, time_kind);
  }

  static double ninth_of_ten(Vector residuals) {
    if (residuals.empty()) return 1;
    for (double& r : residuals) r = std::abs(r);
    std::ranges::sort(residuals);
    return residuals[residuals.size() * 9 / 10];
  }

  TrainerProfile p_;
  std::span<const MeasuredRow> rows_;
  const shape::Hardware& h_;
  StageTimes times_;
};

}  // namespace

Expected<TrainerProfile> fit_profile(const TrainerProfile& start, std::span<const MeasuredRow> rows,
                                     const shape::Hardware& h) {
  const auto usable = static_cast<std::size_t>(std::ranges::count_if(
      rows, [](const MeasuredRow& r) { return r.ran && r.step_s > 0 && r.reported_bytes > 0; }));
  if (usable < kFewestRows)
    return fail(fmt::format("{} rows have a rate and a memory figure; a fit needs {}", usable, kFewestRows));
  return Fitter(start, rows, h).run();
}

}  // namespace sweep::predict
