#include "orchestrator/interop/trainer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/template.h"
#include "base/text.h"
#include "base/utf8.h"
#include "bench_kernels/shape/family.h"
#include "orchestrator/grid/workload.h"
#include "orchestrator/interop/recipes.h"

namespace sweep::interop {
namespace {

// A recipe that says what a trial is to the trainer; the others leave that to the script.
struct Writer {
  std::string trainer, recipe;
  grid::CommandTemplates templates;
};

const std::vector<Writer>& writers() {
  static const std::vector<Writer> all = [] {
    std::vector<Writer> out;
    for (const RecipeText& recipe : recipe_texts()) {
      auto text = grid::read_recipe(recipe.yaml, "recipe " + std::string(recipe.name), built_in_recipes());
      if (!text || (text->flags.empty() && text->files.empty())) continue;  // a test reads every recipe
      if (text->script.empty()) text->script = "train.py";
      std::string trainer = text->trainer;
      grid::CommandTemplates templates(std::move(*text));
      if (templates.bind(grid::Scope(), MeasurePlan()))
        out.push_back({std::move(trainer), std::string(recipe.name), std::move(templates)});
    }
    return out;
  }();
  return all;
}

// Names that a rank fills in: each node runs the line, and its job sets the variables.
std::optional<std::string> pasted_name(std::string_view name) {
  static const std::map<std::string_view, const char*> names{
      {"master_addr", "\"$MASTER_ADDR\""}, {"master_port", "29500"}, {"node", "$NODE_RANK"}, {"files", "."}};
  const auto found = names.find(name);
  return found == names.end() ? std::string(name) : std::string(found->second);
}

std::string pasted(const std::string& text) {
  return templates::finish(text, pasted_name).value_or(text);
}

// Flags, one per line with continuation, so that a diff of two configurations reads well. Numbers of steps
// and where output goes are the sweep's own.
std::string command_line(const grid::CommandTemplates::Rendered& rendered) {
  std::string out;
  for (const auto& [name, value] : rendered.command.environment) out += name + "=" + pasted(value) + " ";
  const auto& words = rendered.command.argv;
  std::size_t of_flags = 0;
  for (const auto& [flag, value] : rendered.flags) of_flags += value ? 2 : 1;
  for (std::size_t i = 0; i + of_flags < words.size(); ++i) {
    if (words[i] == "-m" && i + 1 < words.size() && words[i + 1] == "sweep_trial") {
      ++i;
      continue;
    }
    out += (out.empty() || out.back() == ' ' ? "" : " ") + pasted(words[i]);
  }
  for (const auto& [flag, value] : rendered.flags)
    out += " \\\n  " + flag + (value ? " " + pasted(*value) : "");
  return out + "\n";
}

// Notes what was measured otherwise than any trainer does it.
void note_common_gaps(const Trial& t, std::vector<std::string>& open) {
  if (t.memory_cap_bytes)
    open.push_back(fmt::format("the cap of {} bytes on device memory", *t.memory_cap_bytes));
  if (t.backend != CommBackend::kAuto && t.backend != CommBackend::kNccl)
    open.push_back(fmt::format("backend {} stood for NCCL here", t.backend));
  if (t.precision == Precision::kFp32 && t.workload != Workload::kCommand)
    open.emplace_back("fp32 was measured; the sizes fit, the speed of bf16 will differ");
  if (shape::family_of(t.spec).norm_adds_one)
    open.push_back(fmt::format(
        "the {} family: a gate with GELU, norms that multiply by 1 + weight, and scaled embeddings",
        t.spec.family));
  if (t.routing == Routing::kSkewed)
    open.push_back(fmt::format("routing with {} % of the choices on hot experts", t.hot_percent));
}

TrainerConfig config_of(const Writer& writer, const Trial& trial) {
  Trial shown = trial;
  shown.model = safe_text(trial.model);
  const auto rendered = writer.templates.render(shown);
  const auto file = rendered.command.files.find(writer.templates.text().paste);
  TrainerConfig out{writer.trainer, "", rendered.unsupported};
  out.text = file == rendered.command.files.end() ? command_line(rendered) : pasted(file->second);
  out.unsupported_settings.insert(out.unsupported_settings.end(), rendered.notes.begin(),
                                  rendered.notes.end());
  note_common_gaps(trial, out.unsupported_settings);
  return out;
}

}  // namespace

std::optional<std::string> trainer_named(std::string_view word) {
  for (const Writer& writer : writers())
    if (same_word(writer.trainer, word) || same_word(writer.recipe, word)) return writer.trainer;
  return std::nullopt;
}

std::vector<std::string> trainers() {
  std::vector<std::string> out;
  for (const Writer& writer : writers()) out.push_back(writer.trainer);
  return out;
}

std::vector<TrainerConfig> trainer_configs(const Trial& trial) {
  std::vector<TrainerConfig> out;
  for (const Writer& writer : writers()) out.push_back(config_of(writer, trial));
  return out;
}

TrainerConfig trainer_config(const Trial& trial, std::string_view trainer) {
  return config_of(*std::ranges::find(writers(), trainer, &Writer::trainer), trial);
}

}  // namespace sweep::interop
