#include "orchestrator/predict/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/predict/least_squares.h"
#include "orchestrator/predict/time_model.h"

namespace sweep::predict {
namespace {

constexpr std::size_t kFewestRows = 30;
constexpr double kTimeScale = 0.1, kMemoryScale = 0.03, kMostWronglyRefused = 0.005;
// Nine of ten shipped rows of a left-out cell lie within the fit's error when it is widened by this factor.
constexpr double kUnseen = 1.2;

bool counts(const MeasuredRow& row) {
  return row.ran && row.step_s > 0 && row.reported_bytes > 0;
}

class Fitter {
 public:
  Fitter(TrainerProfile start, std::span<const MeasuredRow> rows, const shape::Hardware& h)
      : p_(std::move(start)), rows_(rows), h_(h) {}

  TrainerProfile run() {
    for (int round = 0; round < 2; ++round) fit_time(), fit_memory();
    fit_time();
    Origin origin{{"time", "error"}, "fitted", fmt::format("{} rows", rows_.size()), h_.name, ""};
    if (!numbers_of(p_, "memory").empty()) origin.of.push_back("memory");
    if (move_limit()) origin.of.push_back("facts.need_share");
    measure_errors();
    p_.set_origin(std::move(origin));
    return p_;
  }

 private:
  // Logarithms keep a number positive.
  void fit(const char* section, bool logarithms, double scale, int rounds, Vector (Fitter::*residuals)()) {
    const auto numbers = numbers_of(p_, section);
    if (numbers.empty()) return;
    Vector x;
    for (const double* number : numbers) x.push_back(logarithms ? std::log(*number) : *number);
    const auto take = [&](const Vector& from) {
      for (std::size_t i = 0; i < numbers.size(); ++i)
        *numbers[i] = logarithms ? std::exp(std::clamp(from[i], -30.0, 30.0)) : from[i];
    };
    const auto at_x = [&](const Vector& at, Vector& out) { take(at), out = (this->*residuals)(); };
    take(least_squares(at_x, x, scale, rounds));
  }
  void fit_time() { fit("time", true, kTimeScale, 40, &Fitter::time_residuals); }
  void fit_memory() { fit("memory", false, kMemoryScale, 60, &Fitter::memory_residuals); }

  // With the stages' times as the profile now has them.
  Case case_of(const MeasuredRow& row) {
    p_.time_model->stage_times(row.layout, p_, h_, times_);
    return {row.trial, row.layout, times_, p_, h_, row.refused};
  }

  Vector residuals(const auto& residual) {
    Vector out;
    for (const auto& row : rows_)
      if (counts(row)) out.push_back(residual(row, case_of(row)));
    return out;
  }

  Vector time_residuals() {
    return residuals([&](const MeasuredRow& row, const Case& c) {
      return std::log(p_.time_model->seconds(c, p_.memory_model->bytes(c)).step_s / row.step_s);
    });
  }

  Vector memory_residuals() {
    const double share = p_.facts.reserved_share;  // 0: the model reserves what it needs
    const double most = h_.memory_bytes && share > 0 ? share * static_cast<double>(*h_.memory_bytes) : 1e300;
    return residuals([&](const MeasuredRow& row, const Case& c) {
      const double reserved = std::min(p_.memory_model->bytes(c).parts.reserved(), most);
      return reserved / p_.facts.reported_unit / row.reported_bytes - 1;
    });
  }

  // Moves the limit as low as rows that ran allow: rows above it are predicted as out of memory. Returns
  // false if it stays.
  bool move_limit() {
    if (!h_.memory_bytes) return false;
    Vector ran;
    std::size_t refused = 0, failed = 0, count = 0;
    for (const auto& row : rows_) {
      failed += !row.ran, count += row.ran;
      refused += row.ran && row.refused;
      if (row.ran && !row.refused) ran.push_back(p_.memory_model->bytes(case_of(row)).need);
    }
    if (failed < kFewestRows || count < kFewestRows) return false;
    std::ranges::sort(ran, std::greater<>());
    const auto allowed = static_cast<std::size_t>(kMostWronglyRefused * static_cast<double>(count));
    const std::size_t beyond = allowed > refused ? allowed - refused : 0;
    if (beyond >= ran.size()) return false;
    p_.facts.need_share = (ran[beyond] * (1 + 1e-9)) / static_cast<double>(*h_.memory_bytes);
    return true;
  }

  // Measures the errors of the rows of each kind; of all rows if a kind has few. Rows that the fit has seen
  // lie nearer than others.
  void measure_errors() {
    using Kind = double Uncertainty::*;
    const auto of = [&](const Vector& residuals, std::initializer_list<Kind> kinds, const auto* model) {
      for (const Kind kind : kinds) {
        Vector own;
        std::size_t i = 0;
        for (const auto& row : rows_)
          if (counts(row)) {
            if (model->spread(row.layout) == kind) own.push_back(residuals[i]);
            ++i;
          }
        p_.error.*kind = kUnseen * ninth_of_ten(own.size() < kFewestRows ? residuals : own);
      }
    };
    of(memory_residuals(), {&Uncertainty::memory, &Uncertainty::memory_tensor}, p_.memory_model);
    of(time_residuals(), {&Uncertainty::time, &Uncertainty::time_far, &Uncertainty::time_many},
       p_.time_model);
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

std::vector<MeasuredRow> measured_rows(const TrainerProfile& start, std::span<const ConfigRow> rows,
                                       StepRules step_rules) {
  std::vector<MeasuredRow> out;
  for (const ConfigRow& row : rows) {
    MeasuredRow m;
    m.trial = row.trial;
    make_layout(row.trial, start, m.layout);
    m.refused = start.memory_model->refusal(row.trial, m.layout, step_rules).has_value();
    m.ran = row.outcome ? *row.outcome == Outcome::kOk : row.tokens_per_s_gpu > 0;
    m.reported_bytes = row.reported_bytes;
    if (row.tokens_per_s_gpu > 0)
      m.step_s = m.layout.tokens * m.layout.micros / (row.tokens_per_s_gpu * m.layout.tp * m.layout.pp);
    out.push_back(std::move(m));
  }
  return out;
}

Expected<TrainerProfile> fit_profile(const TrainerProfile& start, std::span<const MeasuredRow> rows,
                                     const shape::Hardware& h) {
  const auto usable = static_cast<std::size_t>(std::ranges::count_if(rows, counts));
  if (usable < kFewestRows)
    return fail(fmt::format("{} rows have a rate and a memory figure; a fit needs {}", usable, kFewestRows));
  return Fitter(start, rows, h).run();
}

}  // namespace sweep::predict
