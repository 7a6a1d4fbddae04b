// sweep predict: memory and time of configurations from CSV, without a GPU; and profiles fitted to measured
// rows.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <ostream>

#include "base/input_file.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/profiles.h"
#include "orchestrator/driver/calibration.h"
#include "orchestrator/import/configs.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/fit.h"
#include "orchestrator/predict/measured_hardware.h"
#include "orchestrator/predict/predict.h"

namespace sweep::cli {
namespace {

constexpr std::size_t kMostConfigBytes = std::size_t{1} << 30;
constexpr const char* kPredictColumns[] = {"fits",
                                           "sure",
                                           "reason",
                                           "predicted_bytes",
                                           "peak_bytes",
                                           "needed_bytes",
                                           "limit_bytes",
                                           "predicted_step_s",
                                           "predicted_tokens_per_s_gpu",
                                           "weights_bytes",
                                           "gradients_bytes",
                                           "optimizer_bytes",
                                           "activations_bytes",
                                           "logits_bytes",
                                           "buffers_bytes",
                                           "allocator_bytes",
                                           "compute_s",
                                           "pipeline_s",
                                           "slow_messages_s",
                                           "retry_s",
                                           "data_parallel_s",
                                           "optimizer_s",
                                           "uncertainty_bytes",
                                           "uncertainty_time_factor"};

struct PredictCommand {
  std::string configs, hardware = "h100-sxm-80gb", profile, trainer, fit, save;
  std::vector<std::string> models, hold;
};

Expected<imports::Configs> read_rows(const PredictCommand& o, const std::string& path) {
  const auto file = read_input(path, kMostConfigBytes, Streams::kTaken);
  if (!file) return tl::unexpected<Error>(file.error());
  auto configs = imports::read_configs(file->bytes, {file->shown_as, o.hardware, o.models});
  if (!configs) return configs;
  for (const char* ours : kPredictColumns)
    for (const auto& column : configs->columns)
      if (column == ours)
        return fail(
            fmt::format("{}:1: column '{}' is one that predict writes; rename it", file->shown_as, ours));
  return configs;
}

std::vector<predict::MeasuredRow> measured_rows(const imports::Configs& configs,
                                                const predict::TrainerProfile& start) {
  std::vector<predict::MeasuredRow> rows;
  for (const auto& row : configs.rows) {
    predict::MeasuredRow m;
    m.trial = row.trial;
    predict::make_layout(row.trial, start, m.layout);
    m.refused = start.memory_model->refusal(row.trial, m.layout, start, plan::step_refusal).has_value();
    const bool states_any = row.tokens_per_s_gpu > 0 || row.reported_bytes > 0;
    m.ran = row.outcome ? *row.outcome == Outcome::kOk : states_any;
    m.reported_bytes = row.reported_bytes;
    if (row.tokens_per_s_gpu > 0)
      m.step_s = m.layout.tokens * m.layout.micros / (row.tokens_per_s_gpu * m.layout.tp * m.layout.pp);
    rows.push_back(std::move(m));
  }
  return rows;
}

void say_fit(Io& io, const predict::FitReport& report) {
  io.err << fmt::format("fit: {} rows state a time, {} state memory\n", report.times, report.memories);
  const auto say = [&](const char* what, const std::optional<predict::LeftOut>& off, bool logarithms) {
    if (!off) return;
    const double nine = logarithms ? std::exp(off->nine_of_ten) - 1 : off->nine_of_ten;
    io.err << fmt::format(
        "fit: {} of rows left out (5 parts): mean error {:.1f} %, nine of ten within {:.0f} %\n", what,
        100 * off->mean, 100 * nine);
  };
  say("times", report.time, true), say("memory", report.memory, false);
  if (report.residual) io.err << "fit: a residual of these rows helps with those left out, and is kept\n";
  double most = 0;
  for (const double doubt : report.time_doubt) most = std::max(most, doubt);
  if (report.times > 0)
    io.err << fmt::format(
        "fit: a number of the times may still be off by a factor of {:.1f}; those stay near the start's\n",
        std::exp(most));
}

Expected<predict::TrainerProfile> fitted(Io& io, const PredictCommand& o, const imports::Configs& configs,
                                         const predict::TrainerProfile& start, const shape::Hardware& h) {
  auto fit = predict::fit_profile(start, measured_rows(configs, start), h, o.hold);
  if (!fit) return tl::unexpected<Error>(fit.error());
  say_fit(io, fit->report);
  predict::TrainerProfile& profile = fit->profile;
  profile.origins.back().rows += " of " + o.fit;
  profile.origins.back().date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  profile.hardware = h.name;
  return std::move(profile);
}

// The trainer that --trainer names, else that of the rows' column; "": none, or several.
std::string trainer_of(const PredictCommand& o, const imports::Configs& configs) {
  if (!o.trainer.empty() || configs.rows.empty()) return o.trainer;
  const std::string& first = configs.rows.front().trainer;
  const bool same = std::ranges::all_of(configs.rows, [&](const auto& row) { return row.trainer == first; });
  return same ? first : "";
}

// RFC 4180.
std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// The answer of a row: it does not run by a rule or by memory, or it is too near the limit to know.
struct Answer {
  bool fits = true, sure = true;
  std::string reason;
};

Answer answer_of(const predict::TrialPrediction& predicted, const predict::TrainerProfile& p) {
  if (const auto& refused = predicted.refusal) return {false, true, refused->rule + ": " + refused->reason};
  const auto& m = predicted.memory;
  if (m.limit <= 0) return {true, false, "the memory of the hardware is not known"};
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  Answer a;
  a.fits = m.fits();
  a.sure = std::abs(m.need / m.limit - 1) > p.facts.unsure_band;
  if (const auto& seen = predicted.layout.seen; a.fits && seen.fails > 0) {
    a.sure = false;
    a.reason = fmt::format("seen to fail on {} ({:.0f} %): {}", p.hardware, 100 * seen.fails, seen.failure);
    return a;
  }
  if (!a.fits || !a.sure)
    a.reason = fmt::format("memory: stage {} needs {:.1f} GiB, the limit is {:.1f} GiB{}", m.fullest_stage,
                           m.need / kGiB, m.limit / kGiB,
                           a.sure ? "" : "; within what the prediction does not know");
  return a;
}

class Printer {
 public:
  Printer(Io& io, const predict::TrainerProfile& profile, const shape::Hardware& hardware)
      : io_(io), p_(profile), h_(hardware) {}

  void header(const std::vector<std::string>& columns) {
    line_.clear();
    for (const auto& name : columns) line_ += csv_cell(name) + ",";
    line_ += fmt::format("{}\n", fmt::join(kPredictColumns, ","));
    io_.out << line_;
  }

  void row(const imports::ConfigRow& row) {
    predict::predict_trial(row.trial, p_, h_, plan::step_refusal, predicted_);
    const auto& m = predicted_.memory;
    const auto& t = predicted_.time;
    const Answer a = answer_of(predicted_, p_);
    line_.clear();
    for (const auto& cell : row.row.cells) line_ += csv_cell(cell) + ",";
    auto out = std::back_inserter(line_);
    fmt::format_to(out, "{},{},{},{:.0f},{:.0f},{:.0f},{:.0f},{:.6g},{:.6g}", a.fits, a.sure ? "yes" : "no",
                   csv_cell(a.reason), m.reserved / p_.facts.reported_unit, m.wanted, m.need, m.limit,
                   t.step_s, t.tokens_per_s_gpu);
    const auto& b = m.parts;
    for (const double bytes : {b.weights, b.gradients, b.optimizer, b.activations, b.logits,
                               b.gather_buffers + b.gradient_copies, b.base + b.fragmentation + b.held})
      fmt::format_to(out, ",{:.0f}", bytes);
    for (const double s :
         {t.compute_s, t.pipeline_s, t.slow_messages_s, t.retry_s, t.data_parallel_s, t.optimizer_s})
      fmt::format_to(out, ",{:.6g}", s);
    const auto& layout = predicted_.layout;
    fmt::format_to(out, ",{:.3f},{:.3f}\n", p_.error.*p_.memory_model->spread(layout),
                   std::exp(p_.error.*p_.time_model->spread(layout)));
    io_.out << line_;
  }

 private:
  Io& io_;
  const predict::TrainerProfile& p_;
  const shape::Hardware& h_;
  predict::TrialPrediction predicted_;
  std::string line_;
};

// The figures of --hardware: of the catalogue, or those that `sweep calibrate` stored under that name.
struct Figures {
  shape::Hardware hardware;
  std::optional<shape::HardwareProfile> measured;
};

Expected<Figures> figures_of(const std::string& name) {
  auto stored = driver::stored_profiles(driver::calibration_db());
  if (!stored) return tl::unexpected<Error>(stored.error());
  Figures out;
  for (auto& p : *stored)
    if (p.name == name) out.measured = std::move(p);
  auto hardware = shape::find_hardware(out.measured ? out.measured->hardware : name);
  if (!hardware) return tl::unexpected<Error>(hardware.error());
  out.hardware = std::move(*hardware);
  return out;
}

void say_figures(Io& io, const Figures& figures) {
  if (figures.measured)
    io.err << fmt::format("hardware figures: profile '{}', measured on {}\n",
                          answers::safe_text(figures.measured->name),
                          answers::safe_text(figures.measured->date));
  else
    io.err << fmt::format("hardware figures: the catalogue's of {}\n", figures.hardware.name);
}

int predict(Io& io, PredictCommand o) {
  if (o.configs.empty() && o.fit.empty())
    return refuse(io, {"give --configs FILE.csv, or --fit FILE.csv with --save NAME"});
  auto figures = figures_of(o.hardware);
  if (!figures) return refuse(io, figures.error());
  shape::Hardware* const hardware = &figures->hardware;
  o.hardware = hardware->name;
  const bool fits = !o.fit.empty();
  auto configs = read_rows(o, fits ? o.fit : o.configs);
  if (!configs) return refuse(io, configs.error());
  auto profile = choose_profile(io.err, o.profile, trainer_of(o, *configs), o.hardware);
  if (!profile) return refuse(io, profile.error());
  if (figures->measured) predict::use_measured(*figures->measured, *hardware, *profile);
  if (fits) {
    profile = fitted(io, o, *configs, *profile, *hardware);
    if (!profile) return refuse(io, profile.error());
  }
  if (!o.save.empty()) {
    const auto path = save_profile(o.save, *profile);
    if (!path) return refuse(io, path.error());
    io.err << fmt::format("profile '{}' is saved as {}\n", answers::safe_text(o.save),
                          answers::safe_text(path->string()));
  }
  if (o.configs.empty()) return kAnswered;
  if (fits) configs = read_rows(o, o.configs);
  if (!configs) return refuse(io, configs.error());
  say_figures(io, *figures);
  Printer printer(io, *profile, *hardware);
  printer.header(configs->columns);
  for (const auto& row : configs->rows) printer.row(row);
  return kAnswered;
}

}  // namespace

void add_predict(Registry r) {
  auto* c = r.app.add_subcommand("predict",
                                 "memory and time of configurations from a CSV file, without running them");
  auto o = std::make_shared<PredictCommand>();
  c->add_option("--configs", o->configs,
                "the configurations; its first row names the columns (docs/predict.md)")
      ->type_name("FILE.csv");
  c->add_option("--hardware", o->hardware, "hardware catalogue name, or a profile of sweep calibrate")
      ->capture_default_str();
  c->add_option("--profile", o->profile,
                "trainer profile: " + predict::built_in_profiles() +
                    ", a saved one, or a path; else that of the trainer");
  c->add_option("--trainer", o->trainer,
                "the trainer, by the name of its recipe; else the column 'trainer', else the built-in step");
  c->add_option("--fit", o->fit, "fit the profile to these measured rows first")->type_name("FILE.csv");
  c->add_option("--hold", o->hold, "numbers of the profile that the fit leaves as they are")
      ->type_name("NUMBER");
  c->add_option("--save", o->save, "save the profile under this name, or as this path that ends in .json")
      ->type_name("NAME");
  c->add_option("--model", o->models, "LABEL=NAME: a label's dimensions, from the catalogue")
      ->type_name("LABEL=NAME")
      ->allow_extra_args(false);
  c->callback([r, o] { r.chosen = [r, o] { return predict(r.io, *o); }; });
}

}  // namespace sweep::cli
