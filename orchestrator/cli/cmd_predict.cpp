// sweep predict: memory and time of configurations from CSV, without a GPU; and profiles fitted to measured
// rows.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "base/text.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/config_file.h"
#include "orchestrator/driver/calibration.h"
#include "orchestrator/plan/rules.h"
#include "orchestrator/predict/fit.h"
#include "orchestrator/predict/measured_hardware.h"
#include "orchestrator/predict/prediction_view.h"
#include "orchestrator/predict/predictor.h"
#include "orchestrator/predict/saved_profiles.h"
#include "schema/codec.h"

namespace sweep::cli {
namespace {

struct PredictCommand {
  std::string configs, hardware, profile, trainer, fit, save;
  std::vector<std::string> models, hold;
  bool json = false;
};

// The rows that are predicted: their columns come back beside those of the prediction.
Expected<imports::Configs> read_asked(const PredictCommand& o) {
  auto configs = read_config_file(o.configs, {{}, o.hardware, o.models});
  if (!configs) return configs;
  for (const auto& ours : predict::prediction_columns())
    if (std::ranges::find(configs->columns, ours) != configs->columns.end())
      return fail(
          ErrorKind::kConflict, ours,
          fmt::format("{}:1: column '{}' is one that predict writes; rename it", configs->shown_as, ours));
  return configs;
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
  if (report.times > 0 && !report.left_near_start.empty())
    io.err << fmt::format("fit: the rows tell little of {}: they stay near the start's\n",
                          fmt::join(report.left_near_start, ", "));
}

Expected<predict::TrainerProfile> fitted(Io& io, const PredictCommand& o, const imports::Configs& configs,
                                         predict::TrainerProfile start, const shape::Hardware& h) {
  const std::string today = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  start.move_to(h.name, today);
  auto fit = predict::fit_profile(start, predict::measured_rows(start, configs.rows, plan::step_refusal, h),
                                  h, o.hold);
  if (!fit) return tl::unexpected<Error>(fit.error());
  say_fit(io, fit->report);
  predict::TrainerProfile& profile = fit->profile;
  profile.origins.back().rows += " of " + o.fit;
  profile.origins.back().date = today;
  return std::move(profile);
}

// The axes that the program of a trainer decides because no column states them.
predict::Unstated unstated_in(const imports::Configs& configs, const predict::TrainerProfile& profile) {
  if (profile.memory_model->of_own_step()) return {};
  const bool own_types = profile.facts.optimizer_bytes > 0;  // whatever the precision
  return {!configs.axes.contains("zero"), !own_types && !configs.axes.contains("precision")};
}

void say_unstated(Io& io, predict::Unstated unstated) {
  std::vector<std::string> names, values;
  if (unstated.zero) names.emplace_back("zero"), values.emplace_back("zero as 0");
  if (unstated.precision) names.emplace_back("precision"), values.emplace_back("precision as bf16");
  if (names.empty()) return;
  io.err << fmt::format(
      "note: no column says {}, so the program decides. Predictions take {}; `sure` is no where another "
      "choice "
      "changes `fits`\n",
      fmt::join(names, " and "), fmt::join(values, ", "));
}

// The file's columns, then those of the prediction.
void print_predicted_csv(Io& io, const imports::Configs& configs, const predict::TrainerProfile& profile,
                         const shape::Hardware& hardware) {
  for (const auto& name : configs.columns) io.out << csv_field(name) << ',';
  io.out << fmt::format("{}\n", fmt::join(predict::prediction_columns(), ","));
  const predict::Unstated unstated = unstated_in(configs, profile);
  predict::TrialPrediction predicted;
  std::string line;
  for (const auto& row : configs.rows) {
    predict::predict_trial(row.trial, profile, hardware, plan::step_refusal, predicted, unstated);
    line.clear();
    for (const auto& cell : row.cells) line += csv_field(cell) + ",";
    predict::append_prediction(line, predicted, profile);
    io.out << line << '\n';
  }
}

// An array with one object a line: the file's fields as text, then the prediction.
void print_predicted_json(Io& io, const imports::Configs& configs, const predict::TrainerProfile& profile,
                          const shape::Hardware& hardware) {
  const predict::Unstated unstated = unstated_in(configs, profile);
  predict::TrialPrediction predicted;
  const char* before = "[\n";
  for (const auto& row : configs.rows) {
    predict::predict_trial(row.trial, profile, hardware, plan::step_refusal, predicted, unstated);
    nlohmann::json object = nlohmann::json::object();
    for (std::size_t i = 0; i < row.cells.size(); ++i) object[configs.columns[i]] = row.cells[i];
    predict::add_prediction(object, predicted, profile);
    io.out << std::exchange(before, ",\n") << dump(object);
  }
  io.out << (configs.rows.empty() ? "[]\n" : "\n]\n");
}

// The figures of a hardware: of the catalogue, or those that `sweep calibrate` stored under that name.
struct Figures {
  shape::Hardware hardware;
  std::optional<shape::HardwareProfile> measured;
};

// Leaves `out` as it is where no name is given.
Expected<void> find_figures(const std::string& name, Figures& out) {
  if (name.empty()) return {};
  auto stored = driver::stored_profiles(driver::calibration_db());
  if (!stored) return tl::unexpected<Error>(stored.error());
  for (auto& p : *stored)
    if (p.name == name) out.measured = std::move(p);
  auto hardware = shape::find_hardware(out.measured ? out.measured->hardware : name);
  if (!hardware) return tl::unexpected<Error>(hardware.error());
  out.hardware = std::move(*hardware);
  return {};
}

void say_figures(Io& io, const Figures& figures) {
  if (figures.measured && predict::profile_for({&*figures.measured, 1}, figures.measured->name) != nullptr)
    io.err << fmt::format("hardware figures: profile '{}', measured on {}\n",
                          answers::safe_text(figures.measured->name),
                          answers::safe_text(figures.measured->date));
  else
    io.err << fmt::format("hardware figures: the catalogue's of {}\n", figures.hardware.name);
}

int predict(Io& io, PredictCommand o) {
  if (o.configs.empty() && o.fit.empty())
    return refuse(io, {"give --configs FILE.csv, or --fit FILE.csv with --save NAME"});
  Figures figures;
  if (const auto named = find_figures(o.hardware, figures); !named) return refuse(io, named.error());
  o.hardware = figures.hardware.name;
  const bool fits = !o.fit.empty();
  auto configs = fits ? read_config_file(o.fit, {{}, o.hardware, o.models, true}) : read_asked(o);
  if (!configs) return refuse(io, configs.error());
  for (const std::string& note : configs->notes) io.err << answers::safe_text(note) << '\n';
  if (o.hardware.empty())
    if (const auto found = find_figures(configs->hardware, figures); !found) return refuse(io, found.error());
  o.hardware = configs->hardware;
  const auto trainer = trainer_for(o.trainer, o.profile, *configs);
  if (!trainer) return refuse(io, trainer.error());
  auto profile = predict::choose_profile(io.err, o.profile, *trainer, o.hardware);
  if (!profile) return refuse(io, profile.error());
  if (figures.measured) predict::use_measured(*figures.measured, figures.hardware, *profile);
  if (fits) {
    profile = fitted(io, o, *configs, *profile, figures.hardware);
    if (!profile) return refuse(io, profile.error());
  }
  if (!o.save.empty()) {
    const auto path = predict::save_profile(o.save, *profile);
    if (!path) return refuse(io, path.error());
    io.err << fmt::format("profile '{}' is saved as {}\n", answers::safe_text(o.save),
                          answers::safe_text(path->string()));
  }
  if (o.configs.empty()) return kAnswered;
  if (fits) configs = read_asked(o);
  if (!configs) return refuse(io, configs.error());
  say_figures(io, figures), say_unstated(io, unstated_in(*configs, *profile));
  (o.json ? print_predicted_json : print_predicted_csv)(io, *configs, *profile, figures.hardware);
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
  c->add_option("--hardware", o->hardware,
                hardware_sentence("hardware catalogue name, or a profile of sweep calibrate"));
  c->add_option("--profile", o->profile,
                "trainer profile: " + predict::built_in_profiles() +
                    ", a saved one, or a path; else that of the trainer");
  c->add_option("--trainer", o->trainer,
                "the trainer, or its recipe; else the column 'trainer', else the built-in step");
  c->add_option("--fit", o->fit, "fit the profile to these measured rows first")->type_name("FILE.csv");
  c->add_option("--hold", o->hold, "numbers of the profile that the fit leaves as they are")
      ->type_name("NUMBER");
  c->add_option("--save", o->save, "save the profile under this name, or as this path that ends in .json")
      ->type_name("NAME");
  c->add_option("--model", o->models, "LABEL=NAME: a label's dimensions, from the catalogue")
      ->type_name("LABEL=NAME")
      ->allow_extra_args(false);
  c->add_flag("--json", o->json, kJsonDocument);
  c->callback([r, o] { r.chosen = [r, o] { return predict(r.io, *o); }; });
}

}  // namespace sweep::cli
