// sweep import: results that were measured elsewhere, from CSV, as a sweep of the database.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "base/input_file.h"
#include "orchestrator/answers/exchange.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/grid/site.h"
#include "orchestrator/import/import.h"
#include "orchestrator/run/retry_policy.h"

namespace sweep::cli {
namespace {

struct ImportCommand {
  std::string file, db = "sweep.db", sweep, question, hardware;
  imports::Options options;
  bool replace = false, json = false;
};

constexpr std::size_t kMostBytes = std::size_t{2} << 30;

// The name of the file without its ending; of what was piped in: imported.
std::string name_of(const InputFile& file) {
  return file.is_stream ? "imported" : std::filesystem::path(file.shown_as).stem().string();
}

// The name that the file keeps wherever the command is called.
std::string lasting_name(const InputFile& file, const std::string& named) {
  std::error_code none;
  const auto path = file.is_stream ? std::filesystem::path() : std::filesystem::weakly_canonical(named, none);
  return path.empty() ? named : path.string();
}

// Without --sweep, files of one name would be mixed in one sweep.
Expected<void> check_sweep(store::Store& store, const store::SweepRow& sweep) {
  SWEEP_GET(const auto sweeps, store.sweeps());
  const auto known = std::ranges::find(sweeps, sweep.name, &store::SweepRow::name);
  if (known == sweeps.end()) return {};
  std::error_code none;
  if (std::filesystem::weakly_canonical(known->grid_path, none) == sweep.grid_path) return {};
  return fail(
      ErrorKind::kConflict, sweep.name,
      fmt::format("sweep '{}' is of another file, {}; give --sweep {} to add these rows to it, or --sweep "
                  "with another name to keep both apart",
                  sweep.name, known->grid_path, sweep.name));
}

int import_file(Io& io, const ImportCommand& o) {
  imports::Options options = o.options;
  if (!o.hardware.empty()) options.set.push_back("hardware=" + o.hardware);
  const auto file = read_input(o.file, kMostBytes, Streams::kTaken);
  if (!file) return refuse(io, file.error());
  if (o.replace && file->is_stream)
    return refuse(
        io, {"--replace looks for the lines of an earlier import by the name of their file, and what is "
             "piped in has none; save it in a file, or import it under another name with --sweep",
             ErrorKind::kConflict, "--replace"});
  store::SweepRow sweep;
  sweep.name = o.sweep.empty() ? name_of(*file) : o.sweep;
  sweep.question = o.question;
  sweep.grid_path = lasting_name(*file, o.file);
  if (!file->is_stream) options.source = sweep.grid_path;
  options.shown_as = file->shown_as;
  auto read = imports::read(file->bytes, options);
  if (!read) return refuse(io, read.error());
  const auto site = grid::read_site(grid::site_files());
  if (!site) return refuse(io, site.error());
  auto report = answers::derive_imported(read->rows, site->usd_per_node_hour);
  if (!report) return refuse(io, report.error());
  auto store = run::open_store(o.db, store::Mode::kReadWrite);
  if (!store) return refuse(io, store.error());
  const auto earlier = o.replace         ? store::Earlier::kReplace
                       : file->is_stream ? store::Earlier::kKeep  // its lines have no name
                                         : store::Earlier::kRefuse;
  if (o.sweep.empty() && !file->is_stream)
    if (const auto fits = check_sweep(**store, sweep); !fits) return refuse(io, fits.error());
  const auto counts = (*store)->import_rows(sweep, read->rows, earlier, read->unanswered);
  if (!counts) return refuse(io, counts.error());
  report->file = file->shown_as, report->sweep = sweep.name, report->db = o.db;
  report->counts = *counts, report->left_out = read->left_out, report->notes = read->notes;
  io.err << answers::import_text(*report);
  if (o.json) print_document(io, answers::import_json(*report));
  return kAnswered;
}

}  // namespace

void add_import(Registry r) {
  auto* c = r.app.add_subcommand("import", "import results measured elsewhere, from a CSV file, as a sweep");
  auto o = std::make_shared<ImportCommand>();
  c->add_option("FILE", o->file, "the CSV file; its first row names the columns")
      ->required()
      ->type_name("FILE.csv");
  c->add_option("--db", o->db, "the results database (SQLite file)")
      ->envname("SWEEP_DB")
      ->capture_default_str()
      ->type_name("FILE");
  c->add_option("--sweep", o->sweep, "name of the sweep; absent: the name of the file");
  c->add_option("--question", o->question, "the question the measurements answer");
  c->add_option("--hardware", o->hardware, "hardware catalogue name, for every row");
  c->add_option("--map", o->options.map,
                "COLUMN=FIELD:UNIT; COLUMN=label:NAME keeps it for grouping, COLUMN=- leaves it out")
      ->type_name("COLUMN=FIELD")
      ->allow_extra_args(false);
  c->add_option("--set", o->options.set, "AXIS=VALUE for every row, where the file has no such column")
      ->type_name("AXIS=VALUE")
      ->allow_extra_args(false);
  c->add_option("--model", o->options.models,
                "LABEL=NAME: a label's dimensions, from the catalogue or a config.json")
      ->type_name("LABEL=NAME")
      ->allow_extra_args(false);
  c->add_flag("--leave-rest", o->options.leave_rest, "ignore every column that is not a known field");
  c->add_flag("--replace", o->replace,
              "retire what an earlier import read from the same lines, as after a corrected flag");
  c->add_flag("--json", o->json, kJsonDocument);
  c->callback([r, o] { r.chosen = [r, o] { return import_file(r.io, *o); }; });
}

}  // namespace sweep::cli
