#include "orchestrator/import/configs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/expected.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/rank_algebra.h"
#include "orchestrator/import/cells.h"
#include "orchestrator/import/csv.h"
#include "orchestrator/import/layout.h"
#include "orchestrator/import/mapping.h"
#include "orchestrator/import/units.h"
#include "schema/columns.h"

namespace sweep::imports {
namespace {

enum class Holds { kKept, kModel, kSpec, kAxis, kGpus, kStatus, kMemory, kRate, kStep, kTrainer };

struct ConfigColumn {
  Holds kind = Holds::kKept;
  std::string name;                  // name of the column in the file
  const Column* axis = nullptr;      // the axis of a kAxis column
  i64 ModelSpec::*number = nullptr;  // the member of a kSpec column, if it is a number
  std::string_view number_name;      // its dimension
  double factor = 1;                 // bytes in one unit of a kMemory column; seconds of a kStep one
};

// Other names of a model's dimensions; those of fields are import's.
const std::map<std::string_view, std::string_view>& dimension_aliases() {
  static const std::map<std::string_view, std::string_view> known{
      {"num_layers", "layers"},  {"num_heads", "heads"},       {"num_kv_heads", "kv_heads"},
      {"hidden", "hidden_size"}, {"ffn", "intermediate_size"}, {"vocab", "vocab_size"}};
  return known;
}

const std::map<std::string_view, i64 ModelSpec::*>& dimensions() {
  static const std::map<std::string_view, i64 ModelSpec::*> known{
      {"layers", &ModelSpec::layers},
      {"hidden_size", &ModelSpec::hidden_size},
      {"heads", &ModelSpec::heads},
      {"kv_heads", &ModelSpec::kv_heads},
      {"head_dim", &ModelSpec::head_dim},
      {"intermediate_size", &ModelSpec::intermediate_size},
      {"vocab_size", &ModelSpec::vocab_size},
      {"experts", &ModelSpec::experts},
      {"experts_per_token", &ModelSpec::experts_per_token},
      {"max_positions", &ModelSpec::max_positions}};
  return known;
}

ConfigColumn target_of(const std::string& name) {
  std::string key = lower_case(name);
  const Alias* alias = find_alias(key);
  if (alias) key = alias->field;
  if (const auto d = dimension_aliases().find(key); d != dimension_aliases().end()) key = d->second;
  ConfigColumn t{Holds::kKept, name, nullptr, nullptr, {}, 1};
  if (key == "model") return t.kind = Holds::kModel, t;
  if (key == "family" || key == "tie_embeddings") return t.kind = Holds::kSpec, t;
  if (const auto d = dimensions().find(key); d != dimensions().end())
    return t.kind = Holds::kSpec, t.number = d->second, t.number_name = d->first, t;
  if (key == "gpus") return t.kind = Holds::kGpus, t;
  if (key == "outcome") return t.kind = Holds::kStatus, t;
  if (key == "memory_reported_bytes")
    return t.kind = Holds::kMemory, t.factor = alias ? factor_to("bytes", alias->unit).value_or(1) : 1, t;
  if (key == "tokens_per_s_gpu") return t.kind = Holds::kRate, t;
  if (key == "step_ms" || key == "step_s")
    return t.kind = Holds::kStep, t.factor = key == "step_s" ? 1 : 1e-3, t;
  if (key == "trainer") return t.kind = Holds::kTrainer, t;
  if (key == "hardware") return t;
  if (const Column* axis = find_column(key); axis && axis->role == Role::kAxis)
    return t.kind = Holds::kAxis, t.axis = axis, t;
  return t;
}

class ConfigReader {
 public:
  ConfigReader(const ConfigOptions& options, const CsvRow& header) : o_(options) {
    for (const auto& name : header.cells) targets_.push_back(target_of(name));
    base_.hardware = o_.hardware, base_.seq_len = 4096, base_.precision = Precision::kBf16;
  }

  Expected<void> prepare() {
    SWEEP_TRY(check_columns());
    for (const auto& [label, name] : {std::pair("1B", "playbook-1b"), std::pair("8B", "playbook-8b")})
      models_[label] = *shape::find_model(name);
    for (const auto& text : o_.models) {
      const auto equals = text.find('=');
      if (equals == std::string::npos)
        return fail(ErrorKind::kInvalidValue, "--model", fmt::format("--model {}: write LABEL=NAME", text));
      const auto spec = shape::find_model(text.substr(equals + 1));
      if (!spec)
        return tl::unexpected(
            retold(spec.error(), fmt::format("--model {}: {}", text, spec.error().message)));
      models_[text.substr(0, equals)] = *spec;
    }
    const auto hardware = shape::find_hardware(o_.hardware);
    if (!hardware) return tl::unexpected<Error>(hardware.error());
    gpus_per_node_ = hardware->gpus_per_node;
    return {};
  }

  // For each column that is kept as it is: the axis or dimension whose name it nearly has, if there is one.
  std::vector<std::string> notes() const {
    std::vector<std::string> known, out;
    for (const Column& c : columns())
      if (c.role == Role::kAxis) known.emplace_back(c.key);
    for (const auto& [name, member] : dimensions()) known.emplace_back(name);
    for (const ConfigColumn& t : targets_) {
      if (t.kind != Holds::kKept || find_column(lower_case(t.name))) continue;
      if (const auto close = shape::nearest(lower_case(t.name), known))
        out.push_back(fmt::format("column '{}' is kept and not read (did you mean '{}'?)", t.name, *close));
    }
    return out;
  }

  Expected<ConfigRow> row(CsvRow cells) {
    ConfigRow out;
    out.trial = base_, stated_.clear(), own_ = {}, gpus_ = 0;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const auto cell = trimmed(cells.cells[i]);
      if (targets_[i].axis ? says_nothing(*targets_[i].axis, cell) : says_nothing(cell)) continue;
      if (const auto done = read(targets_[i], cell, out); !done)
        return tl::unexpected(in_column(targets_[i].name, done.error()));
    }
    SWEEP_TRY(finish(out.trial));
    const double tokens = static_cast<double>(out.trial.global_batch_size * out.trial.seq_len);
    if (out.step_s > 0 && out.tokens_per_s_gpu <= 0)
      out.tokens_per_s_gpu = tokens / out.step_s / static_cast<double>(out.trial.world());
    out.cells = std::move(cells.cells);
    return out;
  }

 private:
  Expected<void> check_columns() const {
    std::map<std::string_view, std::string_view> seen;  // axis or dimension -> the column that holds it
    for (const ConfigColumn& t : targets_) {
      const std::string_view meant = t.axis != nullptr ? t.axis->key : t.number_name;
      if (meant.empty()) continue;
      const auto [first, added] = seen.emplace(meant, t.name);
      if (!added)
        return fail(ErrorKind::kConflict, t.name,
                    fmt::format("columns '{}' and '{}' both hold {}; keep one of them", first->second, t.name,
                                meant));
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
        return dimension(t, cell);
      case Holds::kAxis:
        stated_.insert(t.axis->key);
        return read_axis(*t.axis, 1, cell, out.trial);
      case Holds::kGpus:
        return keep_number(cell, 1, shape::kMaxWorld, gpus_);
      case Holds::kStatus: {
        const auto outcome = read_outcome(cell);
        if (!outcome) return tl::unexpected<Error>(outcome.error());
        out.outcome = *outcome;
        return {};
      }
      case Holds::kMemory:
        return keep_number(cell, t.factor, 1e15, out.reported_bytes);
      case Holds::kRate:
        return keep_number(cell, 1, 1e12, out.tokens_per_s_gpu);
      case Holds::kStep:
        return keep_number(cell, t.factor, 1e9, out.step_s);
      case Holds::kTrainer:
        out.trainer = cell;
        return {};
    }
    return {};
  }

  static Expected<void> keep_number(std::string_view cell, double factor, double most, double& out) {
    const auto number = read_number(cell);
    if (!number) return tl::unexpected<Error>(number.error());
    out = *number * factor;
    if (out >= 0 && out <= most) return {};
    return fail(ErrorKind::kInvalidValue, cell, fmt::format("'{}' is outside 0 .. {}", cell, most / factor));
  }

  Expected<void> dimension(const ConfigColumn& t, std::string_view cell) {
    if (t.number) {
      double value = 0;
      if (const auto done = keep_number(cell, 1, 1e9, value); !done) return done;
      if (value != std::floor(value))
        return fail(ErrorKind::kInvalidValue, cell, fmt::format("'{}' is not a whole number", cell));
      own_.numbers[t.number_name] = {t.number, static_cast<i64>(value)};
      return {};
    }
    const std::string word = lower_case(cell);
    if (lower_case(t.name) == "family") {
      own_.family = word;
      return {};
    }
    own_.ties = word == "true" || word == "1" || word == "yes";
    if (*own_.ties || word == "false" || word == "0" || word == "no") return {};
    return fail(ErrorKind::kInvalidValue, cell, fmt::format("'{}' is neither true nor false", cell));
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
      return fail(ErrorKind::kConflict, "nodes",
                  fmt::format("column 'nodes': {} nodes of {} GPUs do not hold {} ranks", t.nodes,
                              gpus_per_node_, t.world()));
    return {};
  }

  Expected<void> complete_dp(Trial& t) {
    if (gpus_ <= 0) return {};
    const i64 gpus = static_cast<i64>(gpus_), split = t.tp * t.pp * t.cp;
    if (!stated_.contains("dp")) {
      if (gpus % split != 0)
        return fail(ErrorKind::kConflict, "gpus",
                    fmt::format("column 'gpus': {} are not divisible by tp x pp x cp = {}", gpus, split));
      t.dp = gpus / split, stated_.insert("dp");
    }
    if (t.world() == gpus) return {};
    return fail(ErrorKind::kConflict, "gpus",
                fmt::format("column 'gpus': {}, and dp x tp x pp x cp = {}", gpus, t.world()));
  }

  // The model of that name: a label's, or the catalogue's.
  Expected<ModelSpec> named(const std::string& name) {
    if (const auto known = models_.find(name); known != models_.end()) return known->second;
    auto spec = shape::find_model(name);
    if (spec) models_[name] = *spec;
    return spec;
  }

  Expected<void> find_spec(Trial& t) {
    if (t.model.empty() && !own_.numbers.contains("layers"))
      return fail(ErrorKind::kMissing, "model",
                  "the row names no model: fill the column 'model', or layers, hidden_size, heads, ...");
    auto base = t.model.empty() ? Expected<ModelSpec>(ModelSpec{}) : named(t.model);
    if (!base && !own_.numbers.contains("layers")) return tl::unexpected(in_column("model", base.error()));
    if (base && own_.empty()) {
      t.spec = *base;
      return {};
    }
    const auto spec = shape::completed(own_.over(base.value_or(ModelSpec{})));
    if (!spec)
      return tl::unexpected(
          retold(spec.error(), (base ? "the model: " : "a model of the row's own: ") + spec.error().message));
    t.spec = *spec;
    return {};
  }

  // The model that a row describes.
  struct Own {
    std::map<std::string_view, std::pair<i64 ModelSpec::*, i64>> numbers;  // key: dimension
    std::optional<std::string> family;
    std::optional<bool> ties;
    bool empty() const { return numbers.empty() && !family && !ties; }
    // The named model with the row's dimensions; of another family nothing but these holds. What follows from
    // a dimension that the row changes is derived again.
    ModelSpec over(ModelSpec m) const {
      if (family && *family != m.family) m = ModelSpec{}, m.family = *family;
      if (numbers.contains("hidden_size") || numbers.contains("heads")) m.head_dim = 0;
      if (numbers.contains("heads") && m.kv_heads == m.heads) m.kv_heads = 0;
      for (const auto& [name, dimension] : numbers) m.*(dimension.first) = dimension.second;
      if (ties) m.tie_embeddings = *ties;
      return m;
    }
  };

  const ConfigOptions& o_;
  std::vector<ConfigColumn> targets_;
  Trial base_;
  std::map<std::string, ModelSpec> models_;
  Stated stated_;
  Own own_;
  double gpus_ = 0;
  i64 gpus_per_node_ = 8;
};

}  // namespace

Expected<Configs> read_configs(std::string_view text, const ConfigOptions& options) {
  Configs out;
  std::optional<ConfigReader> reader;
  SWEEP_TRY(read_rows(
      text, options.shown_as,
      [&](CsvRow header) {
        reader.emplace(options, header);
        out.columns = std::move(header.cells);
        out.notes = reader->notes();
        return reader->prepare();
      },
      [&](CsvRow cells) -> Expected<void> {
        auto row = reader->row(std::move(cells));
        if (!row) return tl::unexpected(row.error());
        out.rows.push_back(std::move(*row));
        return {};
      }));
  return out;
}

}  // namespace sweep::imports
