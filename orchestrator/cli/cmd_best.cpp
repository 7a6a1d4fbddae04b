// sweep best: the best configuration per group, ready to copy.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/interop/trainer_config.h"

namespace sweep::cli {
namespace {

struct BestCommand {
  SweepSelector where;
  std::string by, metric, headroom, tool;
  bool json = false, yaml = false;
};

// The winners as another trainer takes them; what its flags do not cover goes to stderr.
int print_forms(Io& io, std::string_view tool, std::span<const answers::BestOfGroup> groups) {
  const auto won = std::ranges::count_if(
      groups, [](const answers::BestOfGroup& group) { return group.winner.has_value(); });
  if (won == 0) return refuse(io, {"there is no winner to write for another trainer; `sweep best` says why"});
  if (won > 1)
    return refuse(
        io,
        {fmt::format("there are {} winners, and a form is of one: `--by recompute` or another axis of one "
                     "value makes one group of all",
                     won)});
  for (const auto& group : groups) {
    if (!group.winner) continue;
    if (group.winner->trial.workload == Workload::kCommand)
      return refuse(
          io, {fmt::format("trial {} is a command of your own, and what the grid does not say of it is not "
                           "known; `sweep explain {}` shows its command line",
                           group.winner->trial_id, group.winner->trial_id)});
    const auto form = interop::trainer_config(group.winner->trial, tool);
    io.out << form.text;
    for (const std::string& sentence : form.unsupported_settings)
      io.err << "not covered: " << sentence << "\n";
  }
  return kAnswered;
}

// Says that the values of the answer compare unlike things.
void warn_of_batches(Io& io, const answers::BestAnswer& found) {
  const bool sizes_differ =
      std::ranges::any_of(found.differ, [](const auto& field) { return field.name() == "micro_batch_size"; });
  if (found.options.metric == "step_ms" && sizes_differ)
    io.err << "note: step times of different batches are compared, because the tokens of a step are not "
              "known; give seq_len in the grid, or let the program report its tokens (docs/trainers.md)\n";
}

int best(Io& io, const BestCommand& o) {
  answers::BestOptions asked;
  asked.group_by = split_list(o.by);
  asked.metric = o.metric;
  if (!o.headroom.empty()) {
    const auto fraction = answers::parse_share(o.headroom, "headroom");
    if (!fraction) return refuse(io, fraction.error());
    asked.headroom = *fraction;
  }
  auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const auto found =
      answers::read_best(*opened->store, opened->sweep, std::move(asked), o.where.sweep.has_value());
  if (!found) return refuse(io, found.error());
  if (o.metric.empty()) warn_of_batches(io, *found);
  const auto& [options, differ, groups] = *found;
  if (!o.tool.empty()) io.err << answers::rehearsed_line(options.rehearsed);
  if (!o.tool.empty()) return print_forms(io, o.tool, groups);
  io.out << (o.json   ? answers::best_json(groups, options)
             : o.yaml ? answers::best_yaml(groups, options)
                      : answers::best_text(differ, groups, options, io.out_is_terminal ? io.width : 0));
  return kAnswered;
}

// The names come from the recipes, which take as long to read as the rest of the program's start: only what shows or
// checks them does.
class KnownTrainer : public CLI::Validator {
 public:
  KnownTrainer() {
    desc_function_ = [] { return fmt::format("{{{}}}", fmt::join(interop::trainers(), ",")); };
    func_ = [](std::string& input) {
      const auto trainer = interop::trainer_named(input);
      if (trainer) input = *trainer;
      return trainer ? std::string()
                     : fmt::format("{} is none of {}, nor a recipe of theirs", input,
                                   fmt::join(interop::trainers(), ", "));
    };
  }
};

}  // namespace

void add_best(Registry r) {
  auto* c = r.app.add_subcommand("best", "the best configuration per group, ready to copy");
  auto o = std::make_shared<BestCommand>();
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  c->add_option("--by", o->by,
                "axes that make the groups, separated by commas; absent: model, and hardware and seq_len "
                "where they vary");
  c->add_option("--metric", o->metric, kUsualMetric);
  c->add_option("--headroom", o->headroom, "share of device memory that must stay free, as 5% or 0.05");
  auto* json = c->add_flag("--json", o->json, "as JSON");
  auto* yaml = c->add_flag("--yaml", o->yaml, "as a grid file: one point per group")->excludes(json);
  c->add_option("--for", o->tool, "as another trainer takes it")
      ->transform(KnownTrainer())
      ->excludes(json)
      ->excludes(yaml);
  c->callback([r, o] { r.chosen = [r, o] { return best(r.io, *o); }; });
}

}  // namespace sweep::cli
