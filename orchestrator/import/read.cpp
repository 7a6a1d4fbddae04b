// Rows of a file -> trials with results.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/fail.h"
#include "base/formula_guard.h"
#include "base/text.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/import/cells.h"
#include "orchestrator/import/draft.h"
#include "orchestrator/import/import.h"
#include "orchestrator/import/mapping.h"
#include "schema/codec.h"
#include "schema/command_spec.h"
#include "schema/labels.h"

namespace sweep::imports {
namespace {

Expected<std::pair<std::string, std::string>> split_assignment(std::string_view flag,
                                                               const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return fail(ErrorKind::kInvalidValue, flag, "{} {}: write two words with = between them, as {} {}", flag,
                text, flag, flag == "--set" ? "seq_len=4096" : "8B=llama3-8b");
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Expected<ModelSpec> spec_from(const std::string& name) {
  if (!name.ends_with(".json")) return shape::find_model(name);
  std::ifstream in(name, std::ios::binary);
  if (!in)
    return fail(ErrorKind::kInvalidValue, name, "{}: it cannot be read; name a Hugging Face config.json",
                name);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto spec = shape::model_from_config_json(text);
  return spec ? spec
              : tl::unexpected(retold(spec.error(), fmt::format("{}: {}", name, spec.error().message)));
}

class Importer {
 public:
  Importer(const Options& options, Mapping mapping) : o_(options), mapping_(std::move(mapping)) {
    out_.notes = mapping_.notes;
  }

  Expected<void> prepare() {
    const KnownFile& known = playbook();
    const bool is_known = mapping_.targets.size() == known.columns.size() &&
                          std::ranges::equal(mapping_.targets, known.columns, {}, &Target::column);
    if (auto done = own_words(); !done) return done;
    if (is_known) assume(known);
    for (const std::string_view needed : {"model", "hardware", "seq_len", "precision", "micro_batch_size"})
      if (!mapping_.has(needed) && !stated_.contains(needed))
        return fail_at(o_.shown_as, 1,
                       {fmt::format("nothing says {}; map a column to it with --map, or give --set {}=VALUE "
                                    "for every row",
                                    needed, needed),
                        ErrorKind::kMissing, std::string(needed)});
    return {};
  }

  Expected<void> read_row(const CsvRow& row) {
    Draft draft;
    draft.trial = base_, draft.stated = stated_, draft.dimensions = dimensions_;
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      if (auto done = read_cell(mapping_.targets[i], unguarded(trimmed(row.cells[i])), draft); !done)
        return tl::unexpected(in_column(mapping_.targets[i].column, done.error()));
    if (draft.trial.model.empty()) return fail(ErrorKind::kMissing, "model", "the row names no model");
    if (draft.command && command_from(draft.trial.program)) draft.trial.workload = Workload::kCommand;
    SWEEP_TRY(find_spec(draft));
    const auto assumed = complete(draft.trial, draft.stated);
    // A pruned row may have a layout that cannot exist: it never ran.
    const bool never_ran = !assumed && outcome_of(draft).value_or(std::nullopt) == Outcome::kPruned;
    if (never_ran) leave_unresolved(draft.trial, draft.stated, assumed.error().subject);
    if (!assumed && !never_ran) return tl::unexpected(assumed.error());
    if (assumed && !assumed->empty()) ++assumed_[*assumed];
    note_hardware(draft.trial.hardware);
    if (!draft.labels.empty()) draft.trial.labels = dump(draft.labels);
    return finish(row, std::move(draft));
  }

  Imported take() {
    if (crooked_ > 0)
      out_.notes.push_back(
          fmt::format("{} rows whose dp x micro_batch_size x grad_accum is not their "
                      "global_batch_size are kept as they are",
                      crooked_));
    for (const auto& [sentence, rows] : assumed_)
      out_.notes.push_back(fmt::format("{} row{}: {}", rows, rows == 1 ? "" : "s", sentence));
    for (const auto& [label, spec] : specs_)
      if (!knows_dimensions(spec))
        out_.notes.push_back(
            fmt::format("the dimensions of model '{0}' are not known, so its mfu stays empty; give "
                        "--model '{0}=NAME' (`sweep models` lists them) or --model "
                        "'{0}=config.json'",
                        label));
    for (const auto& name : unknown_hardware_)
      out_.notes.push_back(
          fmt::format("hardware '{}' is not in the catalogue (`sweep hardware` lists it), so mfu and "
                      "cost stay empty",
                      name));
    return std::move(out_);
  }

 private:
  // --set and --model.
  Expected<void> own_words() {
    for (const auto& text : o_.set) {
      const auto assignment = split_assignment("--set", text);
      if (!assignment) return tl::unexpected<Error>(assignment.error());
      if (stated_.contains(assignment->first))
        return fail(ErrorKind::kConflict, assignment->first, "--set {}: {} is set twice; keep one of them",
                    text, assignment->first);
      if (auto done = set(assignment->first, assignment->second, "--set " + text); !done) return done;
    }
    for (const auto& text : o_.models) {
      const auto assignment = split_assignment("--model", text);
      if (!assignment) return tl::unexpected<Error>(assignment.error());
      auto spec = spec_from(assignment->second);
      if (!spec)
        return tl::unexpected(
            retold(spec.error(), fmt::format("--model {}: {}", text, spec.error().message)));
      specs_[assignment->first] = *spec;
    }
    return {};
  }

  Expected<void> set(std::string_view key, std::string_view value, const std::string& who) {
    const Column* axis = find_column(key);
    const auto dimension = find_dimension(key);
    if (!dimension && (!axis || axis->role != Role::kAxis))
      return fail(ErrorKind::kUnknownName, key, "{}: '{}' is not an axis; docs/fields.md lists them", who,
                  key);
    if (mapping_.has(dimension ? dimension->name : key))
      return fail(ErrorKind::kConflict, key,
                  "{}: the file has a column for {}; leave that out with --map 'COLUMN=-', or drop the --set",
                  who, key);
    stated_.insert(dimension ? dimension->name : axis->key);
    if (key == "model") {
      base_.model = value;
      return {};
    }
    const auto done = dimension ? dimensions_.read(*dimension, value) : read_axis(*axis, 1, value, base_);
    return done ? done
                : tl::unexpected(retold(done.error(), fmt::format("{}: {}", who, done.error().message)));
  }

  void assume(const KnownFile& known) {
    std::string list;
    for (const auto& [key, value] : known.set) {
      if (stated_.contains(key) || mapping_.has(key)) continue;
      if (set(key, value, "")) list += fmt::format("{}{}={}", list.empty() ? "" : ", ", key, value);
    }
    for (const auto& [label, name] : known.models)
      if (const auto spec = shape::find_model(name);
          spec && specs_.try_emplace(std::string(label), *spec).second)
        list += fmt::format("{}{}={}", list.empty() ? "" : ", ", label, name);
    if (!list.empty())
      out_.notes.push_back(
          fmt::format("the columns are those of {}: taken from its text {}", known.name, list));
  }

  static bool says_nothing(const Target& target, std::string_view cell) {
    if (target.meaning == Meaning::kLabel) return cell.empty();
    return target.meaning == Meaning::kAxis ? imports::says_nothing(*target.field, cell)
                                            : imports::says_nothing(cell);
  }

  Expected<void> read_cell(const Target& target, std::string_view cell, Draft& draft) {
    if (says_nothing(target, cell)) return {};
    switch (target.meaning) {
      case Meaning::kIgnored:
        return {};
      case Meaning::kModel:
        draft.trial.model = cell;
        return {};
      case Meaning::kAxis:
        draft.command |= target.field->key == "workload" && cell == to_string(Workload::kCommand);
        if (target.field->key == "workload" && draft.command) return {};
        draft.stated.insert(target.field->key);
        return read_axis(*target.field, target.factor, cell, draft.trial);
      case Meaning::kMetric:
        return read_metric(*target.field, target.factor, cell, draft.metrics);
      case Meaning::kOutcome:
        draft.status = cell;
        return {};
      case Meaning::kState:
        draft.state = cell;
        return {};
      case Meaning::kReason:
        draft.reason = cell;
        return {};
      case Meaning::kOomKind:
        draft.oom_kind = cell;
        return {};
      case Meaning::kLabel:
        draft.labels[target.label] = label_value(cell);
        return {};
      case Meaning::kLabels:
        return read_labels(cell, draft);
      case Meaning::kDimension:
        return draft.dimensions.read(target.dimension, cell);
      case Meaning::kDimensions:
        return read_dimensions(cell, draft);
      case Meaning::kRehearsed:
        return refuse_rehearsed(cell);
    }
    return {};
  }

  static Expected<void> read_labels(std::string_view cell, Draft& draft) {
    const auto parsed = parse_json(cell, kMostCellBytes, 4);
    if (!parsed || !parsed->is_object())
      return fail(ErrorKind::kInvalidValue, "labels",
                  "labels are a JSON object, as `sweep export csv` writes them");
    draft.labels.update(*parsed);
    return {};
  }

  // A model that was imported without dimensions has none here either: its label says as much.
  static Expected<void> read_dimensions(std::string_view cell, Draft& draft) {
    SWEEP_GET(const auto spec, read_model_dimensions(cell));
    if (spec) draft.spec = spec;
    return {};
  }

  Expected<void> finish(const CsvRow& row, Draft draft) {
    const auto outcome = outcome_of(draft);
    if (!outcome) return tl::unexpected<Error>(outcome.error());
    const std::string& path = o_.source.empty() ? o_.shown_as : o_.source;
    std::string source = fmt::format("{}:{}", path, row.line);
    if (!*outcome) {
      out_.unanswered.push_back({trial_id(draft.trial), std::move(source)});
      return ++out_.left_out, Expected<void>{};
    }
    const bool crooked = !batch_multiplies_out(draft.trial);
    if (**outcome == Outcome::kOk)
      SWEEP_TRY(figures_are_possible(draft.trial, draft.metrics, !draft.command && !crooked));
    ImportedRow out;
    out.entry.id = trial_id(draft.trial);
    out.entry.trial = std::move(draft.trial);
    out.entry.source = std::move(source);
    out.entry.order = static_cast<i64>(row.line);
    if (**outcome == Outcome::kPruned || **outcome == Outcome::kUnsupported) {
      out.entry.admitted = false;
      out.entry.verdict = **outcome;
      out.entry.rule = "imported";
      out.entry.reason =
          draft.reason.empty() ? fmt::format("the imported row says {}", draft.status) : draft.reason;
    } else {
      crooked_ += crooked;
      out.result = result_of(**outcome, draft, out.entry.id);
    }
    SWEEP_TRY(differs_by_no_label(out));
    out_.rows.push_back(std::move(out));
    return {};
  }

  // No label is part of a trial's identity, and neither is the model's name: rows that differ by one of them alone
  // would be one trial, and the last of them its answer.
  Expected<void> differs_by_no_label(const ImportedRow& row) {
    const auto [first, added] = trials_.try_emplace(row.entry.id, out_.rows.size());
    if (added) return {};
    const ImportedRow& earlier = out_.rows[first->second];
    const Trial &a = earlier.entry.trial, &b = row.entry.trial;
    if (a.model == b.model && a.labels == b.labels) return {};
    const std::string column = a.model == b.model ? column_of_label(a.labels, b.labels) : column_of_model();
    return fail(ErrorKind::kConflict, column,
                "the row and that of line {} are one configuration but for column '{}', which tells no "
                "configurations apart; map the column to the axis or the dimension that it is, or leave it "
                "out (--map '{}=-') if both rows measured the same, or import each of its values as a sweep "
                "of its own (--sweep)",
                earlier.entry.order, column, column);
  }

  std::string column_of_model() const {
    const auto found = std::ranges::find(mapping_.targets, Meaning::kModel, &Target::meaning);
    return found == mapping_.targets.end() ? "model" : found->column;
  }

  std::string column_of_label(const std::string& a, const std::string& b) const {
    const nlohmann::json before = label_members(a), now = label_members(b);
    for (const Target& target : mapping_.targets) {
      const bool is_label = target.meaning == Meaning::kLabel;
      if (is_label &&
          before.value(target.label, nlohmann::json()) != now.value(target.label, nlohmann::json()))
        return target.column;
    }
    return "labels";
  }

  Expected<void> find_spec(Draft& draft) {
    Trial& trial = draft.trial;
    const bool described = !draft.dimensions.empty();
    // A command's trial without a model has no dimensions: its id is that of its program.
    const bool needs_none = described || trial.workload == Workload::kCommand;
    std::optional<ModelSpec> spec = draft.spec;
    if (!spec && (!needs_none || specs_.contains(trial.model) || shape::find_model(trial.model)))
      spec = spec_of(trial.model);
    if (described) {
      if (spec && !knows_dimensions(*spec)) spec.reset();
      SWEEP_GET(spec, draft.dimensions.model(spec));
    }
    if (spec) trial.spec = *spec;
    return {};
  }

  // The dimensions of a label. If none are stated: none, and a family that keeps two such models apart.
  const ModelSpec& spec_of(const std::string& label) {
    const auto known = specs_.find(label);
    if (known != specs_.end()) return known->second;
    if (const auto spec = shape::find_model(label)) return specs_.emplace(label, *spec).first->second;
    ModelSpec nameless;
    nameless.family = "imported: " + label;
    return specs_.emplace(label, nameless).first->second;
  }

  void note_hardware(const std::string& name) {
    if (name == last_hardware_) return;
    last_hardware_ = name;
    if (!shape::find_hardware(name) && std::ranges::find(unknown_hardware_, name) == unknown_hardware_.end())
      unknown_hardware_.push_back(name);
  }

  const Options& o_;
  Mapping mapping_;
  Trial base_;
  Stated stated_;
  OwnDimensions dimensions_;                // dimensions of --set
  std::map<std::string, ModelSpec> specs_;  // key: label
  std::vector<std::string> unknown_hardware_;
  std::string last_hardware_;
  i64 crooked_ = 0;
  std::map<std::string, i64> assumed_;                   // sentence -> rows
  std::unordered_map<std::string, std::size_t> trials_;  // id -> its first row
  Imported out_;
};

}  // namespace

bool knows_dimensions(const ModelSpec& spec) {
  return spec.layers > 0;
}

Expected<Imported> read(std::string_view text, const Options& options) {
  std::optional<Importer> importer;
  SWEEP_TRY(read_rows(
      text, options.shown_as,
      [&](const CsvRow& header) -> Expected<void> {
        SWEEP_GET(auto mapping, map_columns(header, options.map, options.leave_rest, options.shown_as));
        return importer.emplace(options, std::move(mapping)).prepare();
      },
      [&](const CsvRow& row) { return importer->read_row(row); }));
  auto out = importer->take();
  if (!out.rows.empty()) return out;
  return fail(
      ErrorKind::kInvalidValue, options.shown_as,
      out.left_out == 0
          ? fmt::format("{}: no row follows the names of the columns; nothing was imported", options.shown_as)
          : fmt::format("{}: none of its {} has an answer (they are pending, cancelled or the like); nothing "
                        "was imported",
                        options.shown_as, counted(out.left_out, "row")));
}

}  // namespace sweep::imports
