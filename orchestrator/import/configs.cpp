#include "orchestrator/import/configs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/fail.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/rank_algebra.h"
#include "orchestrator/import/cells.h"
#include "orchestrator/import/csv.h"
#include "orchestrator/import/dimensions.h"
#include "orchestrator/import/layout.h"
#include "orchestrator/import/mapping.h"
#include "orchestrator/import/units.h"
#include "schema/columns.h"

namespace sweep::imports {
namespace {

enum class Holds {
  kKept,
  kModel,
  kSpec,
  kDimensions,
  kAxis,
  kGpus,
  kStatus,
  kMemory,
  kReserved,
  kRate,
  kTotalRate,
  kStep,
  kTrainer,
  kRehearsed
};

struct ConfigColumn {
  Holds kind = Holds::kKept;
  std::string name;              // name of the column in the file
  const Column* axis = nullptr;  // the axis of a kAxis column
  Dimension dimension;           // the dimension of a kSpec column
  double factor = 1;             // bytes in one unit of a kMemory column; seconds of a kStep one
};

ConfigColumn target_of(const std::string& name) {
  std::string key = lower_case(name);
  const Alias* alias = find_alias(key);
  if (alias) key = alias->field;
  ConfigColumn t{Holds::kKept, name, nullptr, {}, 1};
  if (key == "model") return t.kind = Holds::kModel, t;
  if (const auto dimension = find_dimension(key)) return t.kind = Holds::kSpec, t.dimension = *dimension, t;
  if (key == "gpus") return t.kind = Holds::kGpus, t;
  if (key == "outcome") return t.kind = Holds::kStatus, t;
  if (key == "memory_reported_bytes")
    return t.kind = Holds::kMemory, t.factor = alias ? factor_to("bytes", alias->unit).value_or(1) : 1, t;
  if (key == "peak_reserved_bytes") return t.kind = Holds::kReserved, t;
  if (key == "tokens_per_s_gpu") return t.kind = Holds::kRate, t;
  if (key == "tokens_per_s") return t.kind = Holds::kTotalRate, t;
  if (key == "step_ms" || key == "step_s")
    return t.kind = Holds::kStep, t.factor = key == "step_s" ? 1 : 1e-3, t;
  if (key == "trainer") return t.kind = Holds::kTrainer, t;
  if (key == "rehearsed") return t.kind = Holds::kRehearsed, t;
  if (key == kModelDimensions) return t.kind = Holds::kDimensions, t;
  if (key == "hardware") return t;
  if (const Column* axis = find_column(key); axis && axis->role == Role::kAxis)
    return t.kind = Holds::kAxis, t.axis = axis, t;
  return t;
}

struct CsvTable {
  CsvRow header;
  std::vector<CsvRow> rows;
};

Expected<CsvTable> table_of(std::string_view text, const std::string& shown_as) {
  CsvTable out;
  const auto take_header = [&](CsvRow row) -> Expected<void> {
    return out.header = std::move(row), Expected<void>();
  };
  const auto take_row = [&](CsvRow row) -> Expected<void> {
    return out.rows.push_back(std::move(row)), Expected<void>();
  };
  SWEEP_TRY(read_rows(text, shown_as, take_header, take_row));
  return out;
}

// The hardware of all rows: the option's, else that of the column, which a row may leave empty.
Expected<std::string> hardware_of(const CsvTable& table, const ConfigOptions& o) {
  const auto& names = table.header.cells;
  const auto column = std::ranges::find(names, "hardware", [](const auto& name) { return lower_case(name); });
  const auto place = static_cast<std::size_t>(column - names.begin());
  std::string out = o.hardware;
  for (const CsvRow& row : table.rows) {
    const auto cell = place < row.cells.size() ? trimmed(row.cells[place]) : "";
    if (says_nothing(cell)) continue;
    const auto found = shape::find_hardware(std::string(cell));
    if (!found) return fail_at(o.shown_as, row.line, in_column("hardware", found.error()));
    if (out.empty()) out = found->name;
    if (out == found->name) continue;
    return fail_at(
        o.shown_as, row.line,
        {fmt::format("column 'hardware': the row is of {}, {} {}; predict each hardware's rows by "
                     "themselves",
                     found->name, o.hardware.empty() ? "earlier ones are of" : "--hardware says", out),
         ErrorKind::kConflict, "hardware"});
  }
  return out.empty() ? std::string(kDefaultHardware) : out;
}

class ConfigReader {
 public:
  ConfigReader(const ConfigOptions& options, const std::string& hardware, const CsvRow& header)
      : o_(options) {
    for (const auto& name : header.cells) targets_.push_back(target_of(name));
    base_.hardware = hardware, base_.seq_len = 4096, base_.precision = Precision::kBf16;
  }

  Expected<void> prepare() {
    SWEEP_TRY(check_columns());
    for (const auto& [label, name] : {std::pair("1B", "playbook-1b"), std::pair("8B", "playbook-8b")})
      models_[label] = *shape::find_model(name);
    for (const auto& text : o_.models) {
      const auto equals = text.find('=');
      if (equals == std::string::npos)
        return fail(ErrorKind::kInvalidValue, "--model", "--model {}: write LABEL=NAME", text);
      const auto spec = shape::find_model(text.substr(equals + 1));
      if (!spec)
        return tl::unexpected(
            retold(spec.error(), fmt::format("--model {}: {}", text, spec.error().message)));
      models_[text.substr(0, equals)] = *spec;
    }
    const auto hardware = shape::find_hardware(base_.hardware);
    if (!hardware) return tl::unexpected<Error>(hardware.error());
    gpus_per_node_ = hardware->gpus_per_node;
    return {};
  }

  std::set<std::string_view> axes() const {
    std::set<std::string_view> out;
    for (const ConfigColumn& t : targets_)
      if (t.axis != nullptr) out.insert(t.axis->key);
    return out;
  }

  // A note for each column that is kept as it is and nearly has the name of an axis or dimension.
  std::vector<std::string> notes() const {
    std::vector<std::string> known = number_dimensions(), out;
    for (const Column& c : columns())
      if (c.role == Role::kAxis) known.emplace_back(c.key);
    for (const ConfigColumn& t : targets_) {
      if (t.kind != Holds::kKept || find_column(lower_case(t.name))) continue;
      if (const auto close = shape::nearest(lower_case(t.name), known))
        out.push_back(fmt::format("column '{}' is kept and not read (did you mean '{}'?)", t.name, *close));
    }
    return out;
  }

  Expected<ConfigRow> row(CsvRow cells) {
    ConfigRow out;
    out.trial = base_, stated_.clear(), own_ = {}, dimensions_.reset(), gpus_ = total_rate_ = 0;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const auto cell = trimmed(cells.cells[i]);
      if (targets_[i].axis ? says_nothing(*targets_[i].axis, cell) : says_nothing(cell)) continue;
      if (const auto done = read(targets_[i], cell, out); !done)
        return tl::unexpected(in_column(targets_[i].name, done.error()));
    }
    SWEEP_TRY(finish(out.trial));
    const double tokens = static_cast<double>(out.trial.global_batch_size * out.trial.seq_len);
    if (out.tokens_per_s_gpu <= 0) {
      if (out.step_s > 0) total_rate_ = tokens / out.step_s;
      out.tokens_per_s_gpu = total_rate_ / static_cast<double>(out.trial.world());
    }
    out.line = cells.line, out.cells = std::move(cells.cells);
    return out;
  }

 private:
  Expected<void> check_columns() const {
    std::map<std::string_view, std::string_view> seen;  // axis or dimension -> the column that holds it
    for (const ConfigColumn& t : targets_) {
      const std::string_view meant = t.axis != nullptr ? t.axis->key : t.dimension.name;
      if (meant.empty()) continue;
      const auto [first, added] = seen.emplace(meant, t.name);
      if (!added)
        return fail(ErrorKind::kConflict, t.name, "columns '{}' and '{}' both hold {}; keep one of them",
                    first->second, t.name, meant);
    }
    return {};
  }

  Expected<void> read(const ConfigColumn& t, std::string_view cell, ConfigRow& out) {
    switch (t.kind) {
      case Holds::kKept:
        return {};
      case Holds::kModel:
        out.trial.model = cell;
        return {};
      case Holds::kSpec:
        return own_.read(t.dimension, cell);
      case Holds::kAxis:
        stated_.insert(t.axis->key);
        return read_axis(*t.axis, 1, cell, out.trial);
      case Holds::kGpus:
        return keep_number(cell, 1, shape::kMaxWorld, gpus_);
      case Holds::kStatus: {
        const auto outcome = read_outcome(cell);
        if (!outcome) return tl::unexpected<Error>(outcome.error());
        out.outcome = *outcome, out.unanswered = !*outcome;
        return {};
      }
      case Holds::kMemory:
        return keep_number(cell, t.factor, 1e15, out.reported_bytes);
      case Holds::kReserved:
        return keep_number(cell, 1, 1e15, out.reserved_bytes);
      case Holds::kRate:
        return keep_number(cell, 1, 1e12, out.tokens_per_s_gpu);
      case Holds::kTotalRate:
        return keep_number(cell, 1, 1e15, total_rate_);
      case Holds::kStep:
        return keep_number(cell, t.factor, 1e9, out.step_s);
      case Holds::kTrainer:
        out.trainer = cell;
        return {};
      case Holds::kRehearsed:
        return o_.measured ? refuse_rehearsed(cell) : Expected<void>();
      case Holds::kDimensions: {
        const auto spec = read_model_dimensions(cell);
        if (!spec) return tl::unexpected<Error>(spec.error());
        dimensions_ = *spec;
        return {};
      }
    }
    return {};
  }

  static Expected<void> keep_number(std::string_view cell, double factor, double most, double& out) {
    const auto number = read_number(cell);
    if (!number) return tl::unexpected<Error>(number.error());
    out = *number * factor;
    if (out >= 0 && out <= most) return {};
    return fail(ErrorKind::kInvalidValue, cell, "'{}' is outside 0 .. {}", cell, most / factor);
  }

  Expected<void> finish(Trial& t) {
    if (const auto done = find_spec(t); !done) return done;
    if (!stated_.contains("sp")) t.sp = t.tp > 1;
    if (t.micro_batch_size < 1 || t.grad_accum < 1 || t.seq_len < 1)
      return fail(ErrorKind::kInvalidValue, "micro_batch_size",
                  "micro_batch_size, grad_accum and seq_len must be at least 1");
    const auto sizes = shape::RankSizes::of(t);
    for (const auto relation : {shape::Relation::kPositive, shape::Relation::kWorld})
      if (const auto solved = solve(relation, sizes); !solved)
        return tl::unexpected(error_of(solved.error(), sizes));
    if (const auto done = complete_dp(t); !done) return done;
    if (const auto assumed = complete(t, stated_); !assumed) return tl::unexpected(assumed.error());
    if (t.gpus_per_node > gpus_per_node_ && !stated_.contains("gpus_per_node"))
      return fail(ErrorKind::kConflict, "nodes", "column 'nodes': {} nodes of {} GPUs do not hold {} ranks",
                  t.nodes, gpus_per_node_, t.world());
    return {};
  }

  Expected<void> complete_dp(Trial& t) {
    if (gpus_ <= 0) return {};
    const i64 gpus = static_cast<i64>(gpus_), split = t.tp * t.pp * t.cp;
    if (!stated_.contains("dp")) {
      if (gpus % split != 0)
        return fail(ErrorKind::kConflict, "gpus", "column 'gpus': {} are not divisible by tp x pp x cp = {}",
                    gpus, split);
      t.dp = gpus / split, stated_.insert("dp");
    }
    if (t.world() == gpus) return {};
    return fail(ErrorKind::kConflict, "gpus", "column 'gpus': {}, and dp x tp x pp x cp = {}", gpus,
                t.world());
  }

  // The model of that name: a label's, or the catalogue's.
  Expected<ModelSpec> named(const std::string& name) {
    if (const auto known = models_.find(name); known != models_.end()) return known->second;
    auto spec = shape::find_model(name);
    if (spec) models_[name] = *spec;
    return spec;
  }

  Expected<void> find_spec(Trial& t) {
    if (t.model.empty() && !own_.has("layers") && !dimensions_)
      return fail(ErrorKind::kMissing, "model",
                  "the row names no model: fill the column 'model', or layers, hidden_size, heads, ...");
    auto base = dimensions_       ? *dimensions_
                : t.model.empty() ? Expected<ModelSpec>(ModelSpec{})
                                  : named(t.model);
    if (!base && !own_.has("layers")) return tl::unexpected(in_column("model", base.error()));
    SWEEP_GET(const auto spec, own_.model(base ? std::optional(*base) : std::nullopt));
    t.spec = spec;
    return {};
  }

  const ConfigOptions& o_;
  std::vector<ConfigColumn> targets_;
  Trial base_;
  std::map<std::string, ModelSpec> models_;
  Stated stated_;
  OwnDimensions own_;
  std::optional<ModelSpec> dimensions_;  // all of them, as `sweep export csv` writes them
  double gpus_ = 0, total_rate_ = 0;     // tokens per second of all ranks
  i64 gpus_per_node_ = 8;
};

}  // namespace

Expected<Configs> read_configs(std::string_view text, const ConfigOptions& options) {
  SWEEP_GET(auto table, table_of(text, options.shown_as));
  SWEEP_GET(auto hardware, hardware_of(table, options));
  ConfigReader reader(options, hardware, table.header);
  Configs out{options.shown_as, std::move(hardware), std::move(table.header.cells), {}, {}, {}};
  out.notes = reader.notes(), out.axes = reader.axes();
  SWEEP_TRY(reader.prepare());
  for (CsvRow& cells : table.rows) {
    const auto line = cells.line;
    auto row = reader.row(std::move(cells));
    if (!row) return fail_at(options.shown_as, line, row.error());
    out.rows.push_back(std::move(*row));
  }
  return out;
}

Expected<std::string> trainer_of(const Configs& configs,
                                 const std::function<bool(const std::string&, const std::string&)>& same) {
  std::string out;
  for (const ConfigRow& row : configs.rows) {
    if (out.empty()) out = row.trainer;
    if (row.trainer.empty() || same(row.trainer, out)) continue;
    return fail_at(configs.shown_as, row.line,
                   {fmt::format("column 'trainer': the row is of {}, earlier ones are of {}; predict each "
                                "trainer's rows by themselves, or name one with --trainer",
                                row.trainer, out),
                    ErrorKind::kConflict, "trainer"});
  }
  return out;
}

}  // namespace sweep::imports
