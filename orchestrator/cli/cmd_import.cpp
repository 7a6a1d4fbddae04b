// sweep import: results that were measured elsewhere, from CSV, as a sweep of the database.
#include <fmt/format.h>

#include <ostream>

#include "base/input_file.h"
#include "base/text.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/import/import.h"
#include "orchestrator/metrics/derive.h"
#include "orchestrator/run/retry_policy.h"

namespace sweep::cli {
namespace {

struct ImportCommand {
  std::string file, db = "sweep.db", sweep, question, hardware;
  imports::Options options;
  bool replace = false;
};

constexpr std::size_t kMostBytes = std::size_t{2} << 30;

i64 derive_all(std::vector<ImportedRow>& rows) {
  i64 measured = 0;
  for (auto& row : rows) {
    if (!row.result) continue;
    if (row.result->outcome != Outcome::kOk) {
      row.result->metrics.formula_version = metrics::kFormulaVersion;
      continue;
    }
    row.result->metrics = metrics::derive_from_rate(row.entry.trial, row.result->metrics);
    measured += row.result->metrics.mfu.has_value();
  }
  return measured;
}

// A rate above what the hardware can do is a slip in a unit, in the model's dimensions or in the hardware.
Expected<void> none_above_peak(const std::vector<ImportedRow>& rows) {
  for (const auto& row : rows) {
    if (!row.result || row.result->metrics.mfu.value_or(0) <= 1) continue;
    const Metrics& m = row.result->metrics;
    const auto& t = row.entry.trial;
    return fail(
        fmt::format("{}: {} tokens/s per rank are {} times what {} can compute in {} for model '{}'; check "
                    "the unit of the "
                    "column (--map COLUMN=FIELD:UNIT), the hardware and the model's dimensions (--model)",
                    row.entry.source, answers::significant(m.tokens_per_s_gpu.value_or(0)),
                    answers::significant(*m.mfu), t.hardware, t.precision, t.model));
  }
  return {};
}

// The name of the file without its ending; of what was piped in: imported.
std::string name_of(const InputFile& file) {
  return file.is_stream ? "imported" : std::filesystem::path(file.shown_as).stem().string();
}

std::string by_outcome(const std::vector<ImportedRow>& rows) {
  std::map<Outcome, i64> counts;
  for (const auto& row : rows) ++counts[row.result ? row.result->outcome : row.entry.verdict];
  std::string out;
  for (const auto& [outcome, count] : counts)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, to_string(outcome));
  return out.empty() ? "no rows" : out;
}

int import_file(Io& io, const ImportCommand& o) {
  imports::Options options = o.options;
  if (!o.hardware.empty()) options.set.push_back("hardware=" + o.hardware);
  const auto file = read_input(o.file, kMostBytes, Streams::kTaken);
  if (!file) return refuse(io, file.error());
  options.shown_as = file->shown_as;
  auto read = imports::read(file->bytes, options);
  if (!read) return refuse(io, read.error());
  const i64 with_mfu = derive_all(read->rows);
  if (const auto possible = none_above_peak(read->rows); !possible) return refuse(io, possible.error());
  store::SweepRow sweep;
  sweep.name = o.sweep.empty() ? name_of(*file) : o.sweep;
  sweep.question = o.question;
  sweep.grid_path = o.file;
  auto store = run::open_store(o.db, store::Mode::kReadWrite);
  if (!store) return refuse(io, store.error());
  const auto earlier = o.replace         ? store::Earlier::kReplace
                       : file->is_stream ? store::Earlier::kKeep  // its lines have no name
                                         : store::Earlier::kRefuse;
  const auto counts = (*store)->import_rows(sweep, read->rows, earlier);
  if (!counts) return refuse(io, counts.error());
  for (const auto& note : read->notes) io.err << answers::safe_text(note) << '\n';
  if (read->left_out > 0) io.err << fmt::format("{} rows without an answer are left out\n", read->left_out);
  if (counts->repeated > 0)
    io.err << fmt::format("more than one row: {}; all are kept, the last one counts\n",
                          counted(counts->repeated, "configuration"));
  if (counts->replaced > 0)
    io.err << fmt::format("replaced: {} of an earlier import of these lines\n",
                          counted(counts->replaced, "configuration"));
  io.err << fmt::format("{}: sweep '{}' in {}: {} ({}), {} results new, {} known; mfu computed for {}\n",
                        answers::safe_text(file->shown_as), answers::safe_text(sweep.name),
                        answers::safe_text(o.db), counted(counts->trials, "configuration"),
                        by_outcome(read->rows), counts->added, counts->known, with_mfu);
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
  c->callback([r, o] { r.chosen = [r, o] { return import_file(r.io, *o); }; });
}

}  // namespace sweep::cli
