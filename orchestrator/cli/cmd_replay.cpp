// sweep replay: the trials that a strategy would have run of configurations that are measured already, in its
// order.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/answers/tables/replay.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/config_file.h"
#include "orchestrator/predict/saved_profiles.h"

namespace sweep::cli {
namespace {

struct ReplayCommand {
  std::string measured, hardware, profile, trainer, strategy = "search";
  Strategy settings;
  bool json = false;
};

int replay(Io& io, const ReplayCommand& o) {
  const auto configs = read_config_file(o.measured, {{}, o.hardware, {}, true});
  if (!configs) return refuse(io, configs.error());
  const auto hardware = shape::find_hardware(configs->hardware);
  if (!hardware) return refuse(io, hardware.error());
  const auto trainer = trainer_for(o.trainer, o.profile, *configs);
  if (!trainer) return refuse(io, trainer.error());
  const auto profile = predict::choose_profile(io.err, o.profile, *trainer, hardware->name);
  if (!profile) return refuse(io, profile.error());
  if (std::ranges::none_of(configs->rows, [](const ConfigRow& row) { return row.ran(); }))
    return refuse(
        io,
        {fmt::format("{}: no row says how fast it ran: it needs a column tokens_per_s_gpu, tokens_per_s or "
                     "step_ms",
                     configs->shown_as),
         ErrorKind::kMissing, configs->shown_as});
  Strategy strategy = o.settings;
  strategy.kind = *strategy_from(o.strategy);
  const auto tried = answers::replayed(configs->rows, *profile, *hardware, strategy);
  if (o.json)
    print_document(io, answers::replayed_json(tried));
  else
    io.out << answers::replayed_csv(tried);
  return kAnswered;
}

}  // namespace

void add_replay(Registry r) {
  auto* c = r.app.add_subcommand(
      "replay", "which of measured configurations a strategy would have tried, in its order, as CSV");
  auto o = std::make_shared<ReplayCommand>();
  c->add_option("MEASURED", o->measured,
                "measured rows, with the columns of `predict --fit` (docs/search.md)")
      ->required()
      ->type_name("FILE.csv");
  c->add_option("--strategy", o->strategy, strategy_sentences())
      ->check(CLI::IsMember(strategy_words()))
      ->capture_default_str();
  c->add_option("--profile", o->profile,
                "trainer profile: a built-in or saved one, or a path; else that of the trainer");
  c->add_option("--trainer", o->trainer,
                "the trainer, or its recipe; else the column 'trainer', else the built-in step");
  c->add_option("--hardware", o->hardware, hardware_sentence("hardware catalogue name"));
  c->add_option("--max-trials", o->settings.max_trials,
                "the most trials of each model, number of nodes and sequence length")
      ->check(above_zero())
      ->capture_default_str();
  c->add_option("--least-gain", o->settings.least_gain, "stop when less than this share is promised")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  c->add_flag("--json", o->json, kJsonDocument);
  c->callback([r, o] { r.chosen = [r, o] { return replay(r.io, *o); }; });
}

}  // namespace sweep::cli
