// sweep completion, sweep manual: rendered from the parser's own table.
#include <fmt/format.h>

#include <ostream>

#include "orchestrator/cli/command.h"
#include "schema/version.h"

namespace sweep::cli {
namespace {

std::vector<const CLI::App*> commands(const CLI::App& app) {
  auto list = app.get_subcommands([](const CLI::App*) { return true; });
  return {list.begin(), list.end()};
}

// The long names ("--db") and, for positionals, nothing.
std::vector<std::string> flags(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string escaped(const std::string& text, char quote) {
  std::string out;
  for (const char c : text) {
    if (c == quote) out += quote == '\'' ? "'\\'" : "\\";
    out += c;
  }
  return out;
}

std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '-') out += '\\';
    out += c;
  }
  return out;
}

std::string manual_option(const CLI::Option& option) {
  const std::string name = option.get_name(option.get_positional(), true);
  const std::string type =
      option.get_type_size() > 0 && !option.get_positional() ? " " + option.get_type_name() : "";
  return fmt::format(".TP\n.B {}\n{}\n", roff(name + type), roff(option.get_description()));
}

std::string bash_completion(const CLI::App& app) {
  std::string names, cases;
  for (const auto* command : commands(app)) {
    names += command->get_name() + " ";
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), fmt::join(flags(*command), " "));
  }
  return fmt::format(
      "_sweep() {{\n  local cur=${{COMP_WORDS[COMP_CWORD]}} words\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W \"{}--help --version\" -- \"$cur\")); "
      "return; fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}  esac\n"
      "  case $cur in -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;; *) COMPREPLY=($(compgen -f -- "
      "\"$cur\")) ;; "
      "esac\n}}\ncomplete -o filenames -F _sweep sweep\n",
      names, cases);
}

std::string zsh_completion(const CLI::App& app) {
  std::string names, cases;
  for (const auto* command : commands(app)) {
    names += fmt::format("    '{}:{}'\n", command->get_name(), escaped(command->get_description(), '\''));
    cases += fmt::format("    {}) compadd -- {}; _files ;;\n", command->get_name(),
                         fmt::join(flags(*command), " "));
  }
  return fmt::format(
      "#compdef sweep\n_sweep() {{\n  local -a commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  case ${{words[2]}} in\n{}  "
      "esac\n}}\n"
      "compdef _sweep sweep\n",
      names, cases);
}

std::string fish_completion(const CLI::App& app) {
  std::string out;
  for (const auto* command : commands(app)) {
    out += fmt::format("complete -c sweep -n __fish_use_subcommand -a {} -d '{}'\n", command->get_name(),
                       escaped(command->get_description(), '\''));
    for (const CLI::Option* option : command->get_options())
      for (const auto& name : option->get_lnames())
        out += fmt::format("complete -c sweep -n '__fish_seen_subcommand_from {}' -l {} -d '{}'\n",
                           command->get_name(), name, escaped(option->get_description(), '\''));
  }
  return out;
}

std::string manual_page(const CLI::App& app) {
  std::string out = fmt::format(
      ".TH SWEEP 1 \"\" \"sweep {}\" \"User Commands\"\n.SH NAME\nsweep \\- {}\n.SH SYNOPSIS\n.B "
      "sweep\nCOMMAND "
      "[OPTIONS]\n.SH COMMANDS\n",
      kVersion, roff(app.get_description()));
  for (const auto* command : commands(app)) {
    out += fmt::format(".SS sweep {}\n{}\n", roff(command->get_name()), roff(command->get_description()));
    for (const CLI::Option* option : command->get_options()) out += manual_option(*option);
  }
  out += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitCodes) out += fmt::format(".TP\n.B {}\n{}\n", code, roff(meaning));
  return out + ".SH NOTES\nStart here: sweep plan GRID, then sweep run GRID, then sweep best.\n";
}

}  // namespace

void add_completion(Registry r) {
  auto* command = r.app.add_subcommand("completion", "print the completion script of a shell");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([r, shell] {
    r.chosen = [r, shell] {
      r.io.out << (*shell == "bash"  ? bash_completion(r.app)
                   : *shell == "zsh" ? zsh_completion(r.app)
                                     : fish_completion(r.app));
      return kAnswered;
    };
  });
}

void add_manual(Registry r) {
  auto* command = r.app.add_subcommand("manual", "print the manual page (roff): sweep manual | man -l -");
  command->callback([r] {
    r.chosen = [r] {
      r.io.out << manual_page(r.app);
      return kAnswered;
    };
  });
}

}  // namespace sweep::cli
