// Draft: a first grid as it is put together from a command line or a file, and how it is written. Private to interop/.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sweep::interop {

// A grid as it is put together, and how it is written.
struct Draft {
  std::string name, from, recipe, script;
  std::vector<std::string> command, arguments;
  bool per_node = false, stops = false;  // stops: it is told how many steps to take
  std::string more;                      // further lines of the workload
  std::string left_out;              // words of the launcher that the recipe writes itself, or does not know
  std::optional<std::string> steps;  // value of the option that becomes {total_steps}
  std::map<std::string, std::string> axes;   // sweep's own: name -> value
  std::map<std::string, std::string> own;    // arguments of the program alone
  std::map<std::string, std::string> ranks;  // nodes, gpus_per_node

  std::string text() const;
};

std::string quoted(const std::string& text);  // the text as JSON, and so as YAML
// Braces are doubled, so that a template is the text again.
std::string template_of(const std::string& text);
std::optional<double> number_from(const std::string& text);
bool is_integer(const std::string& text);
// It begins with a dash and is no negative number.
bool is_option(const std::string& word);

// A launcher's options say how many ranks there are, and are no axes; a script's options are axes, and say nothing of
// ranks.
enum class Whose { kLauncher, kScript };
// Adds words to the command: the values of options that are known become names in braces, and axes or ranks of the draft.
void add_words(Draft&, std::span<const std::string> words, std::vector<std::string>& to,
               Whose whose = Whose::kScript);

}  // namespace sweep::interop
