#include "orchestrator/grid/workload_text.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/files.h"
#include "base/input_file.h"
#include "base/template.h"
#include "orchestrator/grid/keys.h"
#include "orchestrator/grid/own_axes.h"
#include "orchestrator/grid/read_values.h"
#include "schema/log_numbers.h"

namespace sweep::grid {
namespace {

constexpr int kMostRecipes = 4;  // one laid over another
constexpr std::array<std::string_view, 3> kFileKeys{"from", "format", "set"};

bool is_path(std::string_view recipe) {
  return recipe.starts_with("./") || recipe.starts_with("../") || recipe.starts_with("/") ||
         recipe.ends_with(".yaml") || recipe.ends_with(".yml");
}

// Reads the parts of one document over what recipes gave; each refuses what is wrong with its place.
class WorkloadReader {
 public:
  // folder: paths of `from` and of recipes are relative to it.
  WorkloadReader(DocumentPtr document, std::filesystem::path folder, const BuiltInRecipes& recipes, int depth,
                 WorkloadText& out)
      : document_(std::move(document)),
        folder_(std::move(folder)),
        recipes_(recipes),
        depth_(depth),
        out_(out) {}

  // The section, or the whole of a recipe file.
  Status read(const Node& section, Place place, std::span<const std::string_view> known) {
    if (section.is_scalar()) return recipe(section);
    SWEEP_TRY(need_map(*document_, section, place, "workload"));
    SWEEP_TRY(check_keys(*document_, section, known, "of workload"));
    if (const Node* named = section.find("recipe")) SWEEP_TRY(recipe(*named));
    for (const Entry& part : section.entries) SWEEP_TRY(read_part(part));
    return {};
  }

 private:
  Status recipe(const Node& node) {
    SWEEP_GET(const auto name, read_word(*document_, node, "recipe", 4096));
    if (depth_ >= kMostRecipes)
      return document_->refuse(node.place, {ErrorKind::kInvalidValue, name},
                               "recipe '{}': more than {} recipes lie over one another", name, kMostRecipes);
    if (is_path(name)) {
      const auto path = folder_ / name;
      const auto file = read_input(path, kMaxFileBytes, Streams::kRefused);
      if (!file) return document_->refuse(node.place, file.error());
      return nested(file->bytes, path.lexically_normal(), path.parent_path());
    }
    const auto text = recipes_.find ? recipes_.find(name) : std::nullopt;
    if (!text)
      return document_->refuse(node.place, {ErrorKind::kUnknownName, name},
                               "'{}' is no recipe{}; a recipe of your own is a file: ./{}.yaml", name,
                               suggestion(name, recipes_.names), name);
    if (depth_ == 0) out_.recipe = name;
    return nested(*text, "recipe " + name, folder_);
  }

  Status nested(std::string_view text, const std::filesystem::path& shown_as,
                const std::filesystem::path& folder) {
    SWEEP_GET(auto document, Document::parse(std::string(text), shown_as.string()));
    const auto kept = std::make_shared<const Document>(std::move(document));
    SWEEP_TRY(WorkloadReader(kept, folder, recipes_, depth_ + 1, out_).read(kept->root(), {}, kRecipeKeys));
    out_.first_grid.clear();  // it names the recipe below, not the one that is laid over it
    return {};
  }

  Status read_part(const Entry& part) {
    if (part.key == "command") return words(part, out_.command);
    if (part.key == "container") return words(part, out_.container);
    if (part.key == "arguments") return words(part, out_.arguments);
    if (part.key == "env") return table(part, out_.environment);
    if (part.key == "flags") return table(part, out_.flags);
    if (part.key == "derive") return table(part, out_.derived);
    if (part.key == "unsupported") return sentences(part, out_.unsupported);
    if (part.key == "notes") return sentences(part, out_.notes);
    if (part.key == "log_patterns") return log_patterns(part);
    if (part.key == "files") return files(part);
    if (part.key == "processes") return processes(*part.value);
    if (part.key == "prologue") return prologue(part);
    if (part.key == "spelling") return spelling(part);
    if (part.key == "axes") return read_own_axes(document_, part, out_.axes);
    if (part.key == "stop_after_steps") return flag(part, out_.stop_after_steps);
    return part.key == "recipe" ? Status{} : text_part(part);
  }

  Status text_part(const Entry& part) {
    const std::map<std::string_view, std::string*> texts{
        {"script", &out_.script},   {"folder", &out_.folder}, {"trainer", &out_.trainer},
        {"checked", &out_.checked}, {"paste", &out_.paste},   {"first_grid", &out_.first_grid}};
    SWEEP_GET(*texts.at(part.key), read_word(*document_, *part.value, part.key, kLongestText));
    return {};
  }

  // One text of lines, or a list of lines as the prologue of a batch script (launch) is.
  Status prologue(const Entry& part) {
    const Node& node = *part.value;
    if (!node.is_list()) return line_into(node, out_.prologue);
    if (node.items.empty())
      return document_->refuse(node.place, {ErrorKind::kInvalidValue, part.key},
                               "prologue is empty; give the lines that bash runs, or leave it out");
    std::vector<std::string> lines(node.items.size());
    for (std::size_t i = 0; i < lines.size(); ++i) SWEEP_TRY(line_into(*node.items[i], lines[i]));
    out_.prologue = fmt::format("{}", fmt::join(lines, "\n"));
    return {};
  }

  Status line_into(const Node& node, std::string& to) const {
    SWEEP_GET(to, read_word(*document_, node, "prologue", kLongestText));
    return {};
  }

  Status flag(const Entry& part, bool& to) {
    SWEEP_GET(to, read_flag(*document_, *part.value, part.key));
    return {};
  }

  // A word or a number as it is written; it may be empty.
  Expected<std::string> plain(const Node& node, std::string_view what) const {
    if (!node.is_scalar())
      return document_->refuse(node.place, {ErrorKind::kInvalidValue, what}, "{} takes a text, not {}", what,
                               node.kind_name());
    if (node.text.size() > kLongestText)
      return document_->refuse(node.place, {ErrorKind::kInvalidValue, what}, "{} is longer than {} bytes",
                               what, kLongestText);
    return node.text;
  }

  // A template: text whose braces are right.
  Expected<std::string> template_text(const Node& node, std::string_view what) const {
    auto text = plain(node, what);
    if (!text) return text;
    if (const auto names = templates::names_in(*text); !names)
      return document_->refuse(node.place, names.error());
    return text;
  }

  Status words(const Entry& part, std::vector<PlacedText>& to) {
    SWEEP_TRY(need_list(*document_, *part.value, part.key));
    to.clear();
    for (const NodePtr& item : part.value->items) {
      SWEEP_GET(auto word, template_text(*item, part.key));
      to.push_back({std::move(word), document_, item->place});
    }
    if (part.key == "command" && to.empty())
      return document_->refuse(part.value->place, {ErrorKind::kInvalidValue, "command"},
                               "command is empty; list the program and its arguments");
    return {};
  }

  Status table(const Entry& part, TableText& to) {
    SWEEP_GET(auto rows, read_table(document_, part));
    overlay(to, std::move(rows));
    return {};
  }

  Status sentences(const Entry& part, std::vector<CaseText>& to) {
    SWEEP_GET(auto more, read_sentences(document_, part));
    to.insert(to.end(), more.begin(), more.end());
    return {};
  }

  Status log_patterns(const Entry& part) {
    SWEEP_TRY(need_map(*document_, *part.value, part.place, part.key));
    SWEEP_TRY(check_keys(*document_, *part.value, kLogNumbers, "of log_patterns"));
    for (const Entry& each : part.value->entries) {
      // No template: braces count repetitions there.
      SWEEP_GET(auto text, plain(*each.value, each.key));
      if (const auto pattern = LogPattern::compile(each.key, text); !pattern)
        return document_->refuse(each.value->place, {ErrorKind::kInvalidValue, each.key},
                                 pattern.error().message);
      out_.log_patterns[each.key] = std::move(text);
    }
    return {};
  }

  Status files(const Entry& part) {
    SWEEP_TRY(need_map(*document_, *part.value, part.place, "files"));
    for (const Entry& each : part.value->entries) {
      if (const auto why = why_not_a_file(each.key); !why.empty())
        return document_->refuse(each.place, {ErrorKind::kInvalidValue, each.key}, why);
      SWEEP_TRY(file(each, out_.files[each.key]));
    }
    return {};
  }

  // A text, {from: PATH} of a template beside the grid, or settings: {set: {...}}, over a file with `from`.
  Status file(const Entry& each, FileText& to) {
    if (!each.value->is_map()) {
      SWEEP_GET(auto text, template_text(*each.value, each.key));
      to = {};
      to.text = std::move(text);
      return {};
    }
    SWEEP_TRY(check_keys(*document_, *each.value, kFileKeys, fmt::format("of {}", each.key)));
    const Node* from = each.value->find("from");
    const Entry* set = each.value->entry("set");
    const bool of_settings = to.of_settings || set != nullptr;
    if (from == nullptr && set == nullptr)
      return document_->refuse(each.place, {ErrorKind::kMissing, "set"}, "{} has neither 'from' nor 'set'",
                               each.key);
    if (!of_settings) to = {};
    to.of_settings = of_settings;
    if (from != nullptr) SWEEP_TRY(from_file(*from, to));
    if (set != nullptr) SWEEP_TRY(table(*set, to.settings));
    return format(each, to);
  }

  Status format(const Entry& each, FileText& to) {
    const Node* named = each.value->find("format");
    if (named == nullptr) return {};
    SWEEP_GET(const auto word, read_word(*document_, *named, "format"));
    if (word != "json" && word != "yaml")
      return document_->refuse(named->place, {ErrorKind::kInvalidValue, word},
                               "format is json or yaml, not '{}'", word);
    to.format = word == "yaml" ? ConfigFormat::kYaml : ConfigFormat::kJson;
    return {};
  }

  Status from_file(const Node& from, FileText& to) const {
    SWEEP_GET(const auto path, read_word(*document_, from, "from", 4096));
    auto text = files::read(folder_ / path, kLongestText);
    if (!text) return document_->refuse(from.place, text.error());
    if (to.of_settings) {
      SWEEP_GET(const auto tree, Document::parse(std::move(*text), (folder_ / path).string()));
      to.base = config_tree(tree.root());
      return {};
    }
    if (const auto names = templates::names_in(*text); !names)
      return document_->refuse(from.place, names.error(), "{}: {}", path, names.error().message);
    to.text = std::move(*text);
    return {};
  }

  Status processes(const Node& node) {
    SWEEP_GET(const auto word, read_word(*document_, node, "processes"));
    if (word != "per_rank" && word != "per_node")
      return document_->refuse(node.place, {ErrorKind::kInvalidValue, word},
                               "processes is per_rank or per_node, not '{}'", word);
    out_.per_node = word == "per_node";
    return {};
  }

  Status spelling(const Entry& part) {
    SWEEP_TRY(need_map(*document_, *part.value, part.place, "spelling"));
    for (const Entry& axis : part.value->entries) {
      SWEEP_TRY(need_map(*document_, *axis.value, axis.place, axis.key));
      for (const Entry& value : axis.value->entries) {
        SWEEP_GET(out_.spelling[axis.key][value.key], plain(*value.value, value.key));
      }
    }
    return {};
  }

  DocumentPtr document_;
  std::filesystem::path folder_;
  const BuiltInRecipes& recipes_;
  int depth_;
  WorkloadText& out_;
};

Status check_whole(const WorkloadText& text) {
  if (text.command.empty())
    return text.document->refuse(
        text.place, {ErrorKind::kMissing, "command"},
        "workload has no 'command'; list the program and its arguments, or name a recipe");
  return {};
}

}  // namespace

Expected<WorkloadText> read_workload(const Document& document, const Entry& entry,
                                     const std::filesystem::path& folder, const BuiltInRecipes& recipes) {
  WorkloadText out;
  out.document = std::make_shared<const Document>(document);
  out.place = entry.place;
  SWEEP_TRY(
      WorkloadReader(out.document, folder, recipes, 0, out).read(*entry.value, entry.place, kWorkloadKeys));
  SWEEP_TRY(check_whole(out));
  // The folder's path is relative to the grid file, without a slash at the end.
  const auto path =
      std::filesystem::absolute(folder / (out.folder.empty() ? "." : out.folder)).lexically_normal();
  out.folder = (path.has_filename() ? path : path.parent_path()).string();
  return out;
}

Expected<WorkloadText> read_recipe(std::string_view yaml, const std::filesystem::path& shown_as,
                                   const BuiltInRecipes& recipes) {
  SWEEP_GET(auto document, Document::parse(std::string(yaml), shown_as.string()));
  WorkloadText out;
  out.document = std::make_shared<const Document>(std::move(document));
  SWEEP_TRY(WorkloadReader(out.document, shown_as.parent_path(), recipes, 1, out)
                .read(out.document->root(), {}, kRecipeKeys));
  SWEEP_TRY(check_whole(out));
  return out;
}

}  // namespace sweep::grid
