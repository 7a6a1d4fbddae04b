// sweep init: writes a first grid for a trainer.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "orchestrator/cli/command.h"
#include "orchestrator/grid/grid.h"
#include "orchestrator/interop/first_grid.h"
#include "orchestrator/interop/recipes.h"

namespace sweep::cli {
namespace {

struct InitOptions {
  std::vector<std::string> words;
  std::string output = "grid.yaml";
  bool force = false;
};

Expected<std::string> first_grid(const std::vector<std::string>& words) {
  const std::string& first = words.front();
  if (words.size() > 1) return interop::first_grid_of_command(words);
  if (interop::is_config_file(first)) return interop::first_grid_of_config(first);
  if (interop::built_in_recipes().find(first) || first.ends_with(".yaml"))
    return interop::first_grid_of_recipe(first);
  if (first.find('/') != std::string::npos) return interop::first_grid_of_command(words);
  std::string names;
  for (const std::string& name : interop::built_in_recipes().names)
    names += (names.empty() ? "" : ", ") + name;
  return fail(fmt::format(
      "'{}' is no recipe; take one of {}, a recipe file (.yaml), a DeepSpeed JSON, a torchtitan TOML, "
      "or a command after --",
      first, names));
}

struct CheckedGrid {
  std::string sweep;
  grid::ExpandCounts counts;
};

// Refuses a grid that `sweep plan` would refuse, before it is written.
Expected<CheckedGrid> check(const std::string& text, const std::filesystem::path& output) {
  const auto grid = grid::read_text(text, output, {.recipes = interop::built_in_recipes()});
  if (!grid) return tl::unexpected(grid.error());
  const auto counts = grid::expand(
      *grid, [](PlanEntry&&) { return true; }, 0);
  if (!counts) return tl::unexpected(counts.error());
  return CheckedGrid{grid->name, *counts};
}

nlohmann::json document(const CheckedGrid& checked, const std::string& text, const std::string& file) {
  return {{"file", file.empty() ? nlohmann::json(nullptr) : nlohmann::json(file)},
          {"sweep", checked.sweep},
          {"points", checked.counts.points},
          {"admitted", checked.counts.admitted},
          {"grid", text}};
}

int init(Io& io, const InitOptions& o) {
  const auto text = first_grid(o.words);
  if (!text) return refuse(io, text.error());
  const auto checked = check(*text, o.output);
  if (!checked) return refuse(io, checked.error());
  const bool printed = o.output == "-";
  std::error_code ec;
  if (!printed && !o.force && std::filesystem::exists(o.output, ec))
    return refuse(io,
                  {fmt::format("{} is there already; name another file with -o, or replace it with --force",
                               o.output)});
  if (!printed || !io.json)
    if (auto written = write_output(io, o.output, *text); !written) return refuse(io, written.error());
  if (io.json) print_document(io, document(*checked, *text, printed ? "" : o.output));
  if (!printed)
    io.err << fmt::format("{0}: a first grid; edit it, then `sweep plan {0}` and `sweep run {0}`\n",
                          o.output);
  return kAnswered;
}

}  // namespace

void add_init(Registry r) {
  auto* c = r.app.add_subcommand("init",
                                 "write a first grid: from a recipe (sweep init torchtitan), a configuration "
                                 "file, or a command after --");
  auto o = std::make_shared<InitOptions>();
  c->add_option("FROM", o->words,
                "a recipe, a recipe file, a DeepSpeed JSON, a torchtitan TOML; or, after --, a command line "
                "that works")
      ->required();
  c->add_option("-o,--output", o->output, "the file to write; - prints it")->capture_default_str();
  c->add_flag("--force", o->force, "replace a file that is there");
  add_json(*c);
  c->callback([r, o] { r.chosen = [r, o] { return init(r.io, *o); }; });
}

}  // namespace sweep::cli
