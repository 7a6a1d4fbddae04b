#include "orchestrator/grid/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/template.h"
#include "schema/axis_domain.h"
#include "schema/codec.h"

namespace sweep::grid {
namespace {

// Axes that are no setting of a trainer: they place the ranks, follow from others by the rank algebra, are set for each
// process by the agent, or are limits of the plan.
constexpr std::array kNotOfTheTrainer =
    std::to_array<std::string_view>({"hardware", "nodes", "gpus_per_node", "dp", "tp", "pp", "cp", "ep",
                                     "micro_batch_size", "grad_accum", "global_batch_size", "env", "backend",
                                     "workload", "program", "memory_cap_bytes", "host_memory_cap_bytes"});

std::string doubled(const std::string& text) {
  std::string out;
  for (const char c : text) out.append(c == '{' || c == '}' ? 2 : 1, c);
  return out;
}

std::vector<std::string> sentences_of(const RowValues& values, const std::vector<Case>& cases) {
  std::vector<std::string> out;
  const auto same = [](std::string_view) { return std::optional<std::string>(); };
  for (const Case& one : cases) {
    if (!values.holds(one)) continue;
    const std::string text = values.lenient(*one.text);
    out.push_back(templates::finish(text, same).value_or(text));
  }
  return out;
}

}  // namespace

Status CommandTemplates::bind_words(RowBinder& binder) const {
  for (const auto* words : {&text_.container, &text_.command, &text_.arguments}) {
    for (const PlacedText& word : *words) {
      if (const auto names = binder.use(word.text); !names) {
        if (text_.script.empty() && word.text.find("{script}") != std::string::npos)
          return text_.document->refuse(
              text_.place, {ErrorKind::kMissing, "script"},
              "this recipe runs a script of yours; name it, as in {{recipe: {}, script: train.py}}",
              text_.recipe.empty() ? "torchrun" : text_.recipe);
        return word.document->refuse(word.place, names.error());
      }
    }
  }
  return {};
}

Status CommandTemplates::bind_files(RowBinder& binder) {
  for (const auto& [path, file] : text_.files) {
    if (!file.of_settings) {
      if (const auto names = binder.use(file.text); !names)
        return text_.document->refuse(text_.place, names.error(), path + ": " + names.error().message);
      continue;
    }
    SWEEP_GET(settings_[path], binder.table(file.settings));
  }
  return {};
}

// Refuses what the ranks' side would refuse, because the file is known here.
Status CommandTemplates::check_command() const {
  CommandSpec spec;
  for (const PlacedText& word : text_.command) spec.argv.push_back(word.text);
  for (const RowText& variable : text_.environment) spec.environment[variable.key] = "";
  const auto checked = from_json<CommandSpec>(to_json(spec));
  if (!checked) return text_.document->refuse(text_.place, checked.error());
  return {};
}

Status CommandTemplates::bind(const Scope& scope, const MeasurePlan& measure) {
  SWEEP_TRY(check_command());
  scope_.emplace(scope, measure, text_.script);
  RowBinder binder(scope_->scope(), scope_->reads());
  SWEEP_GET(derived_, binder.derived(text_.derived));
  SWEEP_TRY(bind_words(binder));
  SWEEP_GET(environment_, binder.table(text_.environment));
  for (Row& variable : environment_)
    for (Case& one : variable.cases) one.of_any = true;  // set whatever the grid gives
  SWEEP_GET(flags_, binder.table(text_.flags));
  SWEEP_GET(unsupported_, binder.sentences(text_.unsupported));
  SWEEP_TRY(bind_files(binder));
  used_ = binder.used();
  SWEEP_GET(notes_, binder.sentences(text_.notes));
  read_ = binder.used();
  return check_spelling(scope);
}

// Another spelling of a value that the axis does not have would never be used.
Status CommandTemplates::check_spelling(const Scope& scope) const {
  for (const auto& [axis, values] : text_.spelling) {
    if (!scope.find(axis))
      return text_.document->refuse(text_.place, {ErrorKind::kUnknownName, axis},
                                    "spelling: '{}' is not an axis{}", axis,
                                    suggestion(axis, scope.axis_names()));
    const AxisDomain* domain = axis_domain(axis);
    if (domain == nullptr || domain->words.empty()) continue;
    const std::vector<std::string> words(domain->words.begin(), domain->words.end());
    for (const auto& [value, spelt] : values)
      if (std::ranges::find(words, value) == words.end())
        return text_.document->refuse(text_.place, {ErrorKind::kUnknownName, value},
                                      "spelling: '{}' is not a value of {}{}", value, axis,
                                      suggestion(value, words));
  }
  return {};
}

std::string CommandTemplates::file_text(const RowValues& values, const FileText& file,
                                        const std::vector<Row>& settings) const {
  if (!file.of_settings) return values.lenient(file.text);
  ConfigTree tree = file.base;
  for (const Row& row : settings) {
    const Case* one = values.chosen(row);
    if (one == nullptr) continue;
    const auto text = values.filled(one->text.value_or("")).value_or("");
    const auto same = [](std::string_view name) { return std::optional("{" + std::string(name) + "}"); };
    (void)set_path(tree, row.key, config_value(templates::finish(text, same).value_or(text)));
  }
  return config_template(tree, file.format);
}

CommandTemplates::Rendered CommandTemplates::rendered(RowValues& values) const {
  Rendered out;
  values.spell(&text_.spelling);
  values.derive(derived_);
  CommandSpec& command = out.command;
  command.folder = text_.folder;
  command.per_node = text_.per_node;
  command.stop_after_steps = text_.stop_after_steps;
  command.log_patterns = text_.log_patterns;
  const auto add = [&](const std::vector<PlacedText>& words) {
    for (const PlacedText& word : words) {
      std::string value = values.lenient(word.text);
      if (!value.empty() || word.text.empty()) command.argv.push_back(std::move(value));
    }
  };
  // Asked for by the grid: a shell runs the prologue, and then the command as it stands.
  if (!text_.prologue.empty()) command.argv = after_prologue(doubled(text_.prologue));
  add(text_.container);
  add(text_.command);
  for (const Row& row : flags_) {
    const Case* one = values.chosen(row);
    if (one == nullptr) continue;
    out.flags.emplace_back(row.key, one->text ? values.filled(*one->text) : std::nullopt);
    command.argv.push_back(doubled(row.key));
    if (out.flags.back().second) command.argv.push_back(*out.flags.back().second);
  }
  add(text_.arguments);
  for (const Row& row : environment_)
    if (const Case* one = values.chosen(row))
      command.environment[row.key] = values.filled(one->text.value_or("")).value_or("");
  for (const auto& [path, file] : text_.files) {
    const auto settings = settings_.find(path);
    command.files[path] =
        file_text(values, file, settings == settings_.end() ? std::vector<Row>{} : settings->second);
  }
  out.unsupported = sentences_of(values, unsupported_);
  out.notes = sentences_of(values, notes_);
  return out;
}

void CommandTemplates::also_reads(const std::vector<bool>& slots) {
  for (Slot slot = 0; slot < slots.size(); ++slot)
    if (slots[slot]) read_.insert(slot);
}

// A recipe that lists what its trainer cannot do knows the trainer: what no row and no sentence of it reads, the
// trainer never gets.
void CommandTemplates::refuse_unread(const Trial& trial, const std::vector<bool>* given,
                                     Rendered& out) const {
  if (text_.unsupported.empty()) return;
  Slot slot = 0;
  for_each_axis(trial, [&](const FieldInfo& axis, const auto& preset, const auto& value) {
    const bool is_read = read_.contains(slot) || std::ranges::count(kNotOfTheTrainer, axis.key) > 0;
    if (!is_read && (given == nullptr || (*given)[slot]) && value != preset)
      out.unsupported.push_back(
          fmt::format("{0}: the recipe{1} does not read this axis; give it to the program, as in "
                      "`arguments: [--{0}, \"{{{0}}}\"]`, or leave it out",
                      axis.key, text_.trainer.empty() ? "" : " of " + text_.trainer));
    ++slot;
  });
}

CommandTemplates::Rendered CommandTemplates::render(const Scope& scope, const Point& point,
                                                    const Trial& trial,
                                                    const std::vector<bool>& given) const {
  RowValues values(scope_->scope(), scope_->point_of(point, trial), &given);
  Rendered out = rendered(values);
  refuse_unread(trial, &given, out);
  for (const OwnAxis& axis : axes())
    out.command.axes[axis.name] = plain_text(point.cells[axis.slot], axis.type, scope.words);
  return out;
}

CommandTemplates::Rendered CommandTemplates::render(const Trial& trial) const {
  RecipeScope scope = *scope_;  // words of the trial are added
  const Point point = scope.point_of(point_of(trial, scope.scope()), trial);
  RowValues values(scope.scope(), point, nullptr);
  Rendered out = rendered(values);
  refuse_unread(trial, nullptr, out);
  return out;
}

}  // namespace sweep::grid
