#include "orchestrator/predict/fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "base/fail.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/predict/fitter.h"
#include "orchestrator/predict/predict.h"

namespace sweep::predict {
namespace {

constexpr std::size_t kFewestRows = 5, kOfAKind = 30, kFolds = 5;
// Rows that rank beyond the last are not seen in few: so many of their errors are added.
constexpr double kFewRows = 4;
// Nine of ten shipped rows of a left-out cell lie within the error of rows left out at random when it is widened so.
constexpr double kUnseen = 1.1;
constexpr double kMostWronglyRefused = 0.005;
constexpr double kLeastError = 0.03;  // difference between runs of one configuration, with a margin

double ninth_of_ten(Vector residuals) {
  if (residuals.empty()) return 1;
  for (double& r : residuals) r = std::abs(r);
  std::ranges::sort(residuals);
  const auto count = static_cast<double>(residuals.size());
  return residuals[residuals.size() * 9 / 10] * (1 + kFewRows / (count + kOfAKind));
}

// How far each row's prediction is off when the fit leaves that row out; NaN: the row states no figure.
struct OffOfRows {
  Vector time, plain_time, memory;  // plain: without the residual
};

OffOfRows left_out(const TrainerProfile& start, std::span<const MeasuredRow> rows, const shape::Hardware& h,
                   const std::vector<std::string>& held) {
  const Vector unknown(rows.size(), NAN);
  OffOfRows out{unknown, unknown, unknown};
  // Rows of one layout stay together: the others would know the answer.
  std::map<ResidualPlace, std::size_t> layouts;
  std::vector<std::size_t> layout_of;
  for (const MeasuredRow& row : rows)
    layout_of.push_back(layouts.emplace(residual_place(row.layout), layouts.size()).first->second);
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<MeasuredRow> others, own;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (layout_of[i] * 7 % kFolds == fold)  // neighbours of a file are alike
        own.push_back(rows[i]), places.push_back(i);
      else
        others.push_back(rows[i]);
    Fitter fitter(start, others, h, held);
    fitter.run();
    Fitter judge(fitter.profile(), own, h);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (states_time(own[i])) {
        out.time[places[i]] = judge.time_off(own[i]);
        out.plain_time[places[i]] = judge.plain_time_off(own[i]);
      }
      if (states_memory(own[i])) out.memory[places[i]] = judge.memory_off(own[i]);
    }
  }
  return out;
}

std::optional<LeftOut> summary(const Vector& off, bool logarithms) {
  Vector known;
  double sum = 0;
  for (const double r : off)
    if (!std::isnan(r)) known.push_back(r), sum += std::abs(logarithms ? std::exp(r) - 1 : r);
  if (known.size() < kFewestRows) return std::nullopt;
  return LeftOut{sum / static_cast<double>(known.size()), ninth_of_ten(known)};
}

double middle_off(const Vector& off) {
  Vector known;
  for (const double r : off)
    if (!std::isnan(r)) known.push_back(std::abs(r));
  if (known.empty()) return 0;
  std::ranges::nth_element(known, known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2));
  return known[known.size() / 2];
}

// The error of each kind of rows; of all rows if a kind has few, and if it has none at least the start's.
void measure_errors(TrainerProfile& p, std::span<const MeasuredRow> rows, const OffOfRows& off) {
  using Kind = double Uncertainty::*;
  const auto of = [&](const Vector& residuals, std::initializer_list<Kind> kinds, const auto* model) {
    for (const Kind kind : kinds) {
      Vector all, own;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (std::isnan(residuals[i])) continue;
        all.push_back(residuals[i]);
        if (model->spread(rows[i].layout) == kind) own.push_back(residuals[i]);
      }
      if (all.empty()) continue;
      const double seen = kUnseen * ninth_of_ten(own.size() < kOfAKind ? all : own);
      p.error.*kind = std::max({kLeastError, seen, own.empty() ? p.error.*kind : 0});
    }
  };
  of(off.memory, {&Uncertainty::memory, &Uncertainty::memory_tensor}, p.memory_model);
  of(off.time, {&Uncertainty::time, &Uncertainty::time_far, &Uncertainty::time_many}, p.time_model);
}

// Raises the limit to what rows that ran show. That rows below the start's limit failed says nothing of other models, so
// it stays there: what needs as much as they is not sure. Returns false if nothing moves.
bool move_limit(Fitter& fitter, std::span<const MeasuredRow> rows, const shape::Hardware& h) {
  if (!h.memory_bytes) return false;
  const double device = static_cast<double>(*h.memory_bytes);
  Vector ran, failed;
  std::size_t refused = 0, count = 0;
  for (const auto& row : rows) {
    count += row.ran, refused += row.ran && row.refused;
    if (row.ran && !row.refused) ran.push_back(fitter.needed(row) / device);
    if (row.by_memory) failed.push_back(fitter.needed(row) / device);
  }
  if (failed.size() < kOfAKind || count < kOfAKind) return false;
  std::ranges::sort(ran, std::greater<>());
  const auto allowed = static_cast<std::size_t>(kMostWronglyRefused * static_cast<double>(count));
  const std::size_t beyond = allowed > refused ? allowed - refused : 0;
  if (beyond >= ran.size()) return false;
  ProfileFacts& facts = fitter.profile().facts;
  const double shown = ran[beyond] * (1 + 1e-9), start = facts.need_share;
  double least = start;  // bytes from where on nothing is sure
  for (const double need : failed)
    if (need > shown) least = std::min(least, need);
  if (shown <= start && least >= start) return false;
  facts.need_share = std::max(start, shown);
  facts.unsure_band = std::max(facts.unsure_band, 1 - least / facts.need_share);
  return true;
}

Origin origin_of_fit(Fitter& fitter, const FitReport& report, std::span<const MeasuredRow> rows,
                     const shape::Hardware& h) {
  Origin origin{{"error"}, "fitted", "", h.name, ""};
  origin.rows = fmt::format("{} rows with a time and {} with memory, of {}", report.times, report.memories,
                            rows.size());
  if (fitter.fits_time()) origin.of.insert(origin.of.begin(), "time");
  if (fitter.fits_memory()) origin.of.push_back("memory");
  if (fitter.fits_memory() && move_limit(fitter, rows, h))
    origin.of.insert(origin.of.end(), {"facts.need_share", "facts.unsure_band"});
  return origin;
}

// The numbers of the times that keep more than half of their doubt.
std::vector<std::string> hardly_told(const TrainerProfile& start, const Vector& doubt) {
  const auto names = names_of(start, "time");
  const Vector before = doubts_of(start, "time");
  std::vector<std::string> out;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (doubt[i] > before[i] / 2) out.push_back(names[i]);
  return out;
}

// Every held name is a number that a fit under this profile would move.
Expected<void> check_held(const TrainerProfile& p, const std::vector<std::string>& held) {
  std::vector<std::string> known = names_of(p, "memory");
  std::ranges::copy(names_of(p, "time"), std::back_inserter(known));
  for (const std::string& name : held) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto close = shape::nearest(name, known);
    return fail(ErrorKind::kUnknownName, name,
                "--hold: '{}' is no number that a fit of the profile '{}' moves{}; one of {}", name, p.name,
                close ? fmt::format(" (did you mean '{}'?)", *close) : "", fmt::join(known, ", "));
  }
  return {};
}

}  // namespace

std::vector<MeasuredRow> measured_rows(const TrainerProfile& start, std::span<const ConfigRow> rows,
                                       StepRules step_rules, const shape::Hardware& h) {
  std::vector<MeasuredRow> out;
  for (const ConfigRow& row : rows) {
    MeasuredRow m;
    m.trial = row.trial;
    make_layout(row.trial, start, m.layout);
    m.refused = start.memory_model->refusal(row.trial, m.layout, start, step_rules).has_value();
    const bool states_any = row.tokens_per_s_gpu > 0 || row.reported_bytes > 0 || row.reserved_bytes > 0;
    m.ran = row.outcome ? *row.outcome == Outcome::kOk : states_any && !row.unanswered;
    m.by_memory = row.outcome == Outcome::kOom || row.outcome == Outcome::kFailedUnknown;
    m.reported_bytes =
        row.reported_bytes > 0 ? row.reported_bytes : row.reserved_bytes / start.facts.reported_unit;
    if (row.tokens_per_s_gpu > 0 && why_no_time(row.trial, h).empty())
      m.step_s = m.layout.batch.tokens * m.layout.batch.micros /
                 (row.tokens_per_s_gpu * m.layout.ranks.tp * m.layout.ranks.pp);
    out.push_back(std::move(m));
  }
  return out;
}

Expected<Fitted> fit_profile(const TrainerProfile& start, std::span<const MeasuredRow> rows,
                             const shape::Hardware& h, const std::vector<std::string>& held) {
  SWEEP_TRY(check_held(start, held));
  FitReport report;
  report.times = static_cast<std::size_t>(std::ranges::count_if(rows, states_time));
  report.memories = static_cast<std::size_t>(std::ranges::count_if(rows, states_memory));
  if (std::max(report.times, report.memories) < kFewestRows)
    return fail("{} rows that ran state a rate or a step's time, {} state memory; a fit needs {} of one",
                report.times, report.memories, kFewestRows);
  Fitter fitter(start, rows, h, held);
  fitter.run();
  Origin origin = origin_of_fit(fitter, report, rows, h);
  report.time_doubt = fitter.time_doubt();
  report.left_near_start = hardly_told(start, report.time_doubt);
  OffOfRows off = left_out(start, rows, h, held);
  // A residual that does not help with rows it has not seen is noise.
  if (middle_off(off.plain_time) <= middle_off(off.time))
    off.time = off.plain_time, fitter.profile().residual = {};
  report.residual = !fitter.profile().residual.places.empty();
  report.time = summary(off.time, true), report.memory = summary(off.memory, false);
  TrainerProfile profile = fitter.profile();
  measure_errors(profile, rows, off);
  profile.set_origin(std::move(origin));
  return Fitted{std::move(profile), std::move(report)};
}

}  // namespace sweep::predict
