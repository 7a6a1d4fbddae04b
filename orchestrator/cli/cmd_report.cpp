// sweep report: one HTML page that answers a sweep's question.
#include <fmt/format.h>

#include <ostream>

#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/pages/report_page.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/statistics/best.h"
#include "orchestrator/answers/tables/shortcuts.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/compare_options.h"
#include "orchestrator/cli/page_options.h"
#include "orchestrator/interop/trainer_config.h"
#include "schema/ranking.h"
#include "schema/rehearsal.h"

namespace sweep::cli {
namespace {

struct ReportCommand {
  SweepSelector where;
  std::string output, headroom = "5%", beside, match;
  answers::ReportInput input;
};

// None for a command: what the grid does not say of it is not known.
std::vector<answers::ForeignConfig> foreign_configs(const ResultRow& row) {
  std::vector<answers::ForeignConfig> out;
  if (row.trial.workload == Workload::kCommand) return out;
  for (interop::TrainerConfig& one : interop::trainer_configs(row.trial))
    out.push_back({std::move(one.trainer), std::move(one.text), std::move(one.unsupported_settings)});
  return out;
}

// Empty: not measured.
std::vector<answers::NodeTime> node_times_of(Opened& opened, const ResultRow& row) {
  const auto attempt = opened.store->final_attempt(opened.sweep.id, row.trial_id);
  if (!attempt || !*attempt) return {};
  return answers::node_times_of(*opened.store, opened.sweep.id, row.trial_id, row.trial, **attempt)
      .value_or(std::vector<answers::NodeTime>());
}

int write_report(Io& io, const ReportCommand& o) {
  answers::ReportInput in = o.input;
  const auto headroom = answers::parse_share(o.headroom, "headroom");
  if (!headroom) return refuse(io, headroom.error());
  in.headroom = *headroom;
  auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const auto rows = opened->store->results(opened->sweep.id);
  if (!rows) return refuse(io, rows.error());
  auto environments = opened->store->environments(opened->sweep.id);
  if (!environments) return refuse(io, environments.error());
  in.sweep = opened->sweep.name, in.question = opened->sweep.question;
  in.grid_path = opened->sweep.grid_path, in.grid_text = opened->sweep.grid_text;
  in.options = opened->sweep.options;
  in.db = o.where.db;
  const PageStamp stamp = page_stamp();
  in.made_at = stamp.at, in.version = stamp.version;
  in.rows = *rows;
  if (in.metric.empty()) in.metric = usual_metric(*rows);
  in.environments = std::move(*environments);
  const auto shortcuts = opened->store->shortcuts(opened->sweep.id);
  if (!shortcuts) return refuse(io, shortcuts.error());
  in.shortcuts = answers::shortcut_sentences(*shortcuts);
  in.provenance_of = [&](const ResultRow& row) -> std::optional<Provenance> {
    auto found = opened->store->provenance(opened->sweep.id, std::vector<std::string>{row.trial_id});
    if (!found || found->empty()) return std::nullopt;
    return std::move(found->front());
  };
  in.node_times_of = [&](const ResultRow& row) { return node_times_of(*opened, row); };
  in.foreign_configs = foreign_configs;
  answers::CompareSide other;
  if (!o.beside.empty()) {
    auto side = read_compare_side(o.beside, o.where.db, {});
    if (!side) return refuse(io, side.error());
    other = std::move(*side);
    in.beside = other.sweep.name, in.beside_rows = other.rows;
    if (!o.match.empty()) in.beside_match = split_list(o.match);
  }
  const auto page = answers::report_html(in);
  if (!page) return refuse(io, page.error());
  if (const auto written = write_output(io, o.output, *page); !written) return refuse(io, written.error());
  io.err << fmt::format("{}: {} of {}\n", o.output, counted(i64(rows->size()), "configuration"),
                        answers::safe_text(opened->sweep.name))
         << answers::rehearsed_line(is_rehearsal(opened->sweep.name));
  return kAnswered;
}

}  // namespace

void add_report(Registry r) {
  auto* c = r.app.add_subcommand("report", "one HTML page that answers the sweep's question");
  auto o = std::make_shared<ReportCommand>();
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  add_json(*c, kJsonErrors);
  c->add_option("--metric", o->input.metric = {}, kUsualMetric);
  c->add_option("--headroom", o->headroom,
                "share of device memory that should stay free: a line in the memory chart")
      ->capture_default_str();
  c->add_option(
      "--rows", o->input.heatmap_rows,
      "axis of the heatmap's rows; absent: of the two axes that matter most the one with more values");
  c->add_option("--cols", o->input.heatmap_cols, "axis of its columns; absent: the other one");
  auto* beside = c->add_option("--beside", o->beside,
                               "another sweep, as `compare` names it (an import of published figures): a "
                               "table of the configurations that both have");
  c->add_option("--match", o->match,
                "of --beside: axes or labels in which two results must be equal to be one configuration; "
                "absent: all that "
                "both know")
      ->needs(beside)
      ->type_name("AXES");
  c->add_option("-o,--output", o->output, "FILE.html")->required();
  c->callback([r, o] { r.chosen = [r, o] { return write_report(r.io, *o); }; });
}

}  // namespace sweep::cli
