// sweep init: writes a first grid for a trainer.
#include <fmt/format.h>

#include <filesystem>
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

// Refuses a grid that `sweep plan` would refuse, before it is written.
Expected<void> check(const std::string& text, const std::filesystem::path& output) {
  const auto grid = grid::read_text(text, output, {.recipes = interop::built_in_recipes()});
  if (!grid) return tl::unexpected(grid.error());
  const auto counts = grid::expand(
      *grid, [](PlanEntry&&) { return true; }, 0);
  return counts ? Expected<void>() : tl::unexpected(counts.error());
}

int init(Io& io, const InitOptions& o) {
  const auto text = first_grid(o.words);
  if (!text) return refuse(io, text.error());
  if (auto right = check(*text, o.output); !right) return refuse(io, right.error());
  std::error_code ec;
  if (o.output != "-" && !o.force && std::filesystem::exists(o.output, ec))
    return refuse(io,
                  {fmt::format("{} is there already; name another file with -o, or replace it with --force",
                               o.output)});
  if (auto written = write_output(io, o.output, *text); !written) return refuse(io, written.error());
  if (o.output != "-")
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
  c->callback([r, o] { r.chosen = [r, o] { return init(r.io, *o); }; });
}

}  // namespace sweep::cli
