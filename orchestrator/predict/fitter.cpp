#include "orchestrator/predict/fitter.h"

#include <algorithm>
#include <cmath>

namespace sweep::predict {
namespace {

constexpr std::size_t kFewestOfASection = 5;

}  // namespace

const Fitter::Section Fitter::kTime{"time", true, 0.1, 40, &Fitter::time_residuals};
const Fitter::Section Fitter::kMemory{"memory", false, 0.03, 60, &Fitter::memory_residuals};

bool states_time(const MeasuredRow& row) {
  return row.ran && row.step_s > 0;
}

bool states_memory(const MeasuredRow& row) {
  return row.ran && row.reported_bytes > 0;
}

Fitter::Fitter(TrainerProfile start, std::span<const MeasuredRow> rows, const shape::Hardware& h,
               std::vector<std::string> held)
    : start_(start), p_(std::move(start)), rows_(rows), h_(h), held_(std::move(held)) {
  const auto enough = [&](bool (*states)(const MeasuredRow&)) {
    return static_cast<std::size_t>(std::ranges::count_if(rows_, states)) >= kFewestOfASection;
  };
  fits_time_ = enough(states_time);
  fits_memory_ = enough(states_memory) && !numbers_of(p_, "memory").empty();
}

// Memory reads times (which host is behind), and times read memory (retries).
void Fitter::run() {
  if (fits_time_) p_.residual = {};
  for (int round = 0; round < (fits_time_ && fits_memory_ ? 2 : 1); ++round) {
    if (fits_time_) fit(kTime);
    if (fits_memory_) fit(kMemory);
  }
  if (fits_time_ && fits_memory_) fit(kTime);
  if (fits_time_) fit_residual();
}

// Logarithms keep a number positive; one that is 0 stays next to it.
Vector Fitter::place(const Section& section, const TrainerProfile& of) const {
  constexpr double kNone = 1e-13;
  TrainerProfile p = of;
  Vector x;
  for (const double* number : numbers_of(p, section.name))
    x.push_back(section.logarithms ? std::log(std::max(*number, kNone)) : *number);
  return x;
}

// The rows' residuals, and each number's distance from the start as one more.
Residuals Fitter::residuals_at(const Section& section) {
  return [this, &section, start = place(section, start_), doubts = doubts_of(p_, section.name, held_),
          numbers = numbers_of(p_, section.name)](const Vector& x, Vector& out) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      *numbers[i] = section.logarithms ? std::exp(std::clamp(x[i], -30.0, 30.0)) : x[i];
    out.clear();
    (this->*section.residuals)(out);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      out.push_back(section.scale * (x[i] - start[i]) / doubts[i]);
  };
}

void Fitter::fit(const Section& section) {
  const Residuals residuals = residuals_at(section);
  Vector out;
  residuals(least_squares(residuals, place(section, p_), section.scale, section.rounds), out);
}

Vector Fitter::time_doubt() {
  if (!fits_time_) return doubts_of(p_, "time");
  return deviations(residuals_at(kTime), place(kTime, p_), kTime.scale);
}

// The row's case, with the stages' times as the profile now has them.
Case Fitter::case_of(const MeasuredRow& row) {
  p_.time_model->stage_times(row.layout, p_, h_, times_);
  return {row.trial, row.layout, times_, p_, h_, row.refused};
}

// REQUIRES: one of the fitter's rows.
MemoryPrediction Fitter::bytes_of(const MeasuredRow& row, const Case& c) {
  if (p_.memory_model->reader != kStep) return p_.memory_model->bytes(c);
  known_.resize(rows_.size());
  auto& known = known_[static_cast<std::size_t>(&row - rows_.data())];
  if (!known) known = p_.memory_model->bytes(c);
  return *known;
}

void Fitter::time_residuals(Vector& out) {
  for (const auto& row : rows_)
    if (states_time(row)) out.push_back(time_off(row));
}

void Fitter::memory_residuals(Vector& out) {
  for (const auto& row : rows_)
    if (states_memory(row)) out.push_back(memory_off(row));
}

double Fitter::time_off(const MeasuredRow& row) {
  const Case c = case_of(row);
  return std::log(p_.time_model->seconds(c, bytes_of(row, c)).step_s / row.step_s);
}

double Fitter::plain_time_off(const MeasuredRow& row) {
  const Case c = case_of(row);
  return std::log(p_.time_model->plain_seconds(c, bytes_of(row, c)).step_s / row.step_s);
}

double Fitter::memory_off(const MeasuredRow& row) {
  const double share = p_.facts.reserved_share;  // 0: the model reserves what it needs
  const double most = h_.memory_bytes && share > 0 ? share * static_cast<double>(*h_.memory_bytes) : 1e300;
  const double reserved = std::min(p_.memory_model->bytes(case_of(row)).parts.reserved(), most);
  return reserved / p_.facts.reported_unit / row.reported_bytes - 1;
}

double Fitter::needed(const MeasuredRow& row) {
  return p_.memory_model->bytes(case_of(row)).need;
}

void Fitter::fit_residual() {
  std::vector<std::pair<ResidualPlace, double>> left;
  for (const auto& row : rows_)
    if (states_time(row)) left.emplace_back(residual_place(row.layout), -time_off(row));
  p_.residual = residual_of(left, h_.name);
}

}  // namespace sweep::predict
