#include "orchestrator/import/mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/fail.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/import/cells.h"
#include "orchestrator/import/units.h"
#include "schema/labels.h"

namespace sweep::imports {
namespace {

constexpr Alias kAliases[] = {
    {"gas", "grad_accum", ""},
    {"gradient_accumulation_steps", "grad_accum", ""},
    {"mbs", "micro_batch_size", ""},
    {"gbs", "global_batch_size", ""},
    {"zero_stage", "zero", ""},
    {"sequence_length", "seq_len", ""},
    {"status", "outcome", ""},
    {"mfu", "mfu_reported", "fraction"},  // a claim of the file, never our own figure
    {"mfu_pct", "mfu_reported", "%"},
    {"tok_s_gpu", "tokens_per_s_gpu", "tokens/s"},
    {"tok_s", "tokens_per_s", "tokens/s"},
    {"mem_gb", "memory_reported_bytes", "GB"},
    {"mem_gib", "memory_reported_bytes", "GiB"},
};

// Computed here from what the file measured, or of the other database only.
constexpr std::string_view kOurs[] = {"tflops_gpu",
                                      "hfu",
                                      "mfu_fwd_bwd",
                                      "mt_per_hour",
                                      "cost_per_mt",
                                      "peak_flops",
                                      "formula_version",
                                      "sweep",
                                      "trial",
                                      "attempts",
                                      "finished_at",
                                      "price_date",
                                      "useful_mfu",
                                      "useful_tokens_per_s",
                                      "useful_tokens_per_s_gpu",
                                      "useful_cost_per_mt"};

std::string fields_like(std::string_view name) {
  std::vector<std::string> known = number_dimensions();
  for (const Column& c : columns()) known.emplace_back(c.key);
  const auto close = shape::nearest(name, known);
  return close ? fmt::format(" (did you mean '{}'?)", *close) : "";
}

struct ColumnRequest {
  std::string field, unit;
  bool stated_unit = false;
};

class Mapper {
 public:
  Mapper(const CsvRow& header, bool leave_rest, const std::string& shown_as)
      : header_(header), leave_rest_(leave_rest), shown_as_(shown_as) {
    for (const auto& name : header.cells) names_.insert(lower_case(name));
  }

  Expected<void> add_request(const std::string& text) {
    const auto equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return fail(ErrorKind::kInvalidValue, "--map",
                  "--map {}: write COLUMN=FIELD, COLUMN=FIELD:UNIT, COLUMN=label:NAME or COLUMN=-", text);
    const std::string column = text.substr(0, equals), what = text.substr(equals + 1);
    if (std::ranges::find(header_.cells, column) == header_.cells.end())
      return fail(ErrorKind::kUnknownName, column, "--map {}: {} has no column '{}'; it has: {}", text,
                  shown_as_, column, fmt::join(header_.cells, ", "));
    ColumnRequest request{what, "", false};
    if (const auto colon = what.find(':'); colon != std::string::npos && !what.starts_with("label:"))
      request = {what.substr(0, colon), what.substr(colon + 1), true};
    if (!requests_.emplace(column, request).second)
      return fail(ErrorKind::kConflict, column, "--map names column '{}' twice; keep one", column);
    return {};
  }

  Expected<Mapping> map() {
    for (const auto& name : header_.cells) SWEEP_TRY(column(name));
    if (!left_out_.empty()) out_.notes.push_back(fmt::format("left out: {}", fmt::join(left_out_, ", ")));
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> refuse(const std::string& name, ErrorKind kind, const std::string& cause) const {
    return fail_at(shown_as_, header_.line, {fmt::format("column '{}' {}", name, cause), kind, name});
  }

  Expected<void> column(const std::string& name) {
    if (!seen_.insert(name).second)
      return refuse(name, ErrorKind::kConflict, "is there twice; rename or remove one of them in the file");
    // Even where --map leaves it out: a rehearsed row must not pass for a measured one.
    if (lower_case(name) == "rehearsed") {
      out_.targets.push_back({Meaning::kRehearsed, name, nullptr, "", 1});
      return {};
    }
    const auto requested = requests_.find(name);
    if (requested != requests_.end()) return place_as(name, requested->second);
    if (name.empty())
      return leave_rest_ ? leave(name)
                         : refuse(name, ErrorKind::kMissing,
                                  "has no name; name it in the file, or give --leave-rest");
    const std::string key = lower_case(name);
    if (key == "mfu" && names_.contains("mfu_reported")) return leave(name);  // both: `mfu` was computed
    if (std::ranges::find(kOurs, key) != std::end(kOurs)) return leave(name);
    if (const Alias* alias = find_alias(key)) {
      if (!alias->unit.empty() && alias->field != key)
        out_.notes.push_back(fmt::format("column '{}' is read as {} in {}", name, alias->field, alias->unit));
      return place_as(name, {std::string(alias->field), std::string(alias->unit), !alias->unit.empty()});
    }
    if (const Column* field = find_column(key))
      return place_as(name, {std::string(field->key), std::string(field->unit), true});
    if (key == kModelDimensions || find_dimension(key)) return place_as(name, {key, "", false});
    if (leave_rest_) return leave(name);
    return refuse(
        name, ErrorKind::kUnknownName,
        fmt::format(
            "is not a field of this tool{}; say what it is with --map '{}=FIELD:UNIT', keep it for grouping "
            "with --map '{}=label:{}', or leave it out with --map '{}=-' (all such columns: --leave-rest)",
            fields_like(key), name, name, name, name));
  }

  Expected<void> leave(const std::string& name) {
    left_out_.push_back(name.empty() ? "(no name)" : name);
    out_.targets.push_back({Meaning::kIgnored, name, nullptr, "", 1});
    return {};
  }

  Expected<void> place_as(const std::string& name, const ColumnRequest& request) {
    if (request.field == "-") return leave(name);
    Target target{meaning_of(request.field), name, nullptr, "", 1};
    if (target.meaning == Meaning::kLabel) {
      target.label = request.field.substr(6);
      if (const auto why = objection_to_label(target.label))
        return refuse(name, ErrorKind::kInvalidValue,
                      fmt::format("cannot become the label '{}': {}", target.label, *why));
    }
    if (const auto dimension = find_dimension(request.field);
        dimension && target.meaning == Meaning::kIgnored)
      target.meaning = Meaning::kDimension, target.dimension = *dimension;
    const std::string taken = target.meaning == Meaning::kLabel       ? request.field
                              : target.meaning == Meaning::kDimension ? std::string(target.dimension.name)
                                                                      : canonical(request.field);
    const auto [other, free] = taken_.emplace(taken, name);
    if (!free)
      return refuse(name, ErrorKind::kConflict,
                    fmt::format("and column '{}' are both '{}'; leave one out with --map '{}=-'",
                                other->second, taken, name));
    if (target.meaning == Meaning::kIgnored) {
      target.field = find_column(request.field);
      const bool ours = std::ranges::find(kOurs, request.field) != std::end(kOurs) || request.field == "mfu";
      if (ours)
        return refuse(name, ErrorKind::kUnsupported,
                      fmt::format("cannot become '{}', which is computed here; a claim of the file is "
                                  "'mfu_reported', a rate 'tokens_per_s_gpu'",
                                  request.field));
      const bool program = request.field == "program";  // the program of a command; its axes are the labels
      if (!target.field || (target.field->role == Role::kIdentity && !program))
        return refuse(name, ErrorKind::kUnknownName,
                      fmt::format("is mapped to '{}', which is not a field{}; `sweep query \"select * from "
                                  "results limit 1\"` and docs/fields.md list them",
                                  request.field, fields_like(request.field)));
      target.meaning = target.field->role != Role::kMetric ? Meaning::kAxis : Meaning::kMetric;
      if (auto known = unit(name, request, target); !known) return known;
    } else if (request.stated_unit && !request.unit.empty()) {
      return refuse(name, ErrorKind::kInvalidValue,
                    fmt::format("is mapped to '{}', which has no unit", request.field));
    }
    out_.targets.push_back(std::move(target));
    return {};
  }

  Expected<void> unit(const std::string& name, const ColumnRequest& request, Target& target) {
    const std::string_view unit = target.field->unit;
    if (request.stated_unit) {
      const auto factor = factor_to(unit, request.unit);
      if (!factor)
        return refuse(name, ErrorKind::kInvalidValue,
                      fmt::format("({}): {}", request.field, factor.error().message));
      target.factor = *factor;
      return {};
    }
    if (!is_ambiguous(unit)) return {};
    return refuse(
        name, ErrorKind::kInvalidValue,
        fmt::format(
            "is mapped to '{0}' without a unit; state it, for example --map '{1}={0}:{2}'; units: {3}",
            request.field, name, unit, units_for(unit)));
  }

  // Why later commands could not name such a label.
  static std::optional<std::string_view> objection_to_label(std::string_view label) {
    if (find_column(label) || find_dimension(label)) return "a field has that name; give another one";
    if (!is_label_name(label)) return "names that begin with @ are the program's own";
    if (label.find(',') != std::string_view::npos) return "a comma separates names";
    return std::nullopt;
  }

  static std::string canonical(const std::string& field) { return field == "status" ? "outcome" : field; }

  static Meaning meaning_of(const std::string& field) {
    static const std::map<std::string_view, Meaning> kMeanings = {
        {"model", Meaning::kModel},    {"outcome", Meaning::kOutcome},
        {"status", Meaning::kOutcome}, {"state", Meaning::kState},
        {"reason", Meaning::kReason},  {"oom_kind", Meaning::kOomKind},
        {"labels", Meaning::kLabels},  {kModelDimensions, Meaning::kDimensions},
    };
    if (field.starts_with("label:") && field.size() > 6) return Meaning::kLabel;
    const auto it = kMeanings.find(field);
    return it == kMeanings.end() ? Meaning::kIgnored : it->second;
  }

  const CsvRow& header_;
  bool leave_rest_;
  const std::string& shown_as_;
  std::map<std::string, ColumnRequest> requests_;
  std::set<std::string> names_, seen_;
  std::map<std::string, std::string> taken_;  // field -> column
  std::vector<std::string> left_out_;
  Mapping out_;
};

}  // namespace

const KnownFile& playbook() {
  static const KnownFile known{"the Ultra-Scale Playbook's chart",
                               {"model", "nodes", "dp", "tp", "pp", "gas", "mbs", "gbs", "zero", "status",
                                "mfu_pct", "tok_s_gpu", "mem_gb"},
                               {{"hardware", "h100-sxm-80gb"},
                                {"seq_len", "4096"},
                                {"precision", "bf16_master"},
                                {"grad_dtype", "fp32"}},
                               {{"1B", "playbook-1b"}, {"8B", "playbook-8b"}}};
  return known;
}

const Alias* find_alias(std::string_view column) {
  const auto* found = std::ranges::find(kAliases, column, &Alias::column);
  return found == std::end(kAliases) ? nullptr : found;
}

bool Mapping::has(std::string_view field) const {
  return std::ranges::any_of(targets, [&](const Target& t) {
    return (field == "model" && t.meaning == Meaning::kModel) || (t.field && t.field->key == field) ||
           t.dimension.name == field;
  });
}

Expected<Mapping> map_columns(const CsvRow& header, std::span<const std::string> maps, bool leave_rest,
                              const std::string& shown_as) {
  if (header.cells.size() == 1 && header.cells[0].find_first_of(";\t") != std::string::npos)
    return fail_at(shown_as, header.line,
                   {"the columns are not separated by commas; save the file as comma-separated CSV (with a "
                    "decimal point)",
                    ErrorKind::kInvalidValue});
  Mapper mapper(header, leave_rest, shown_as);
  for (const auto& text : maps) SWEEP_TRY(mapper.add_request(text));
  return mapper.map();
}

}  // namespace sweep::imports
