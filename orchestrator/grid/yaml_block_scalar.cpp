// Block scalars: text behind '|' (as it stands) or '>' (folded), by indentation (8.1).
#include <fmt/format.h>

#include "orchestrator/grid/yaml_reader.h"

namespace sweep::grid {

bool YamlReader::block_scalar(int n, YamlToken& out) {
  BlockHeader header;
  int indent = 0;
  out.kind = YamlToken::Kind::kQuoted;
  return block_header(header) && block_indent(n, header, indent) && block_lines(n, indent, header, out.text);
}

bool YamlReader::block_header(BlockHeader& header) {
  header.start = source_.mark();
  header.folded = source_.peek() == '>';
  source_.take();
  for (int i = 0; i < 2; ++i) {
    const char c = source_.peek();
    if (c >= '1' && c <= '9' && header.indent == 0) {
      header.indent = c - '0';
    } else if ((c == '+' || c == '-') && header.chomp == ' ') {
      header.chomp = c;
    } else {
      break;
    }
    source_.take();
  }
  const char behind = source_.peek();
  source_.skip_blanks();
  if (source_.peek() == '#' && YamlSource::is_blank(behind)) source_.skip_line();
  if (!source_.end() && !source_.at_break())
    return invalid(source_.mark(), "the text of a '|' or '>' begins on the next line, indented");
  if (!source_.end()) source_.take();
  return true;
}

// The indentation of its text: as given, or that of its first line that is not empty.
bool YamlReader::block_indent(int n, const BlockHeader& header, int& indent) {
  if (header.indent > 0) {
    indent = std::max(n, 0) + header.indent;
    return true;
  }
  const Mark first = source_.mark();
  int widest = 0;
  Mark at_widest = first;
  while (true) {
    const int spaces = source_.indentation();
    source_.take(static_cast<std::size_t>(spaces));
    if (!source_.at_break() && !source_.end()) break;
    if (spaces > widest) {
      widest = spaces;
      at_widest = source_.mark();
    }
    if (source_.end()) break;
    source_.take();
  }
  const bool text = !source_.end() && source_.column() > n && !source_.at_marker();
  indent = text ? source_.column() : std::max(n + 1, widest);
  source_.back_to(first);
  return widest <= indent ||
         invalid(at_widest,
                 "an empty line before the text is indented further than the text; remove its spaces");
}

bool YamlReader::block_lines(int n, int indent, const BlockHeader& header, std::string& out) {
  std::size_t breaks = 0;  // since the last text
  bool any = false, was_spaced = false;
  while (!source_.end()) {
    const Mark line = source_.mark();
    const int spaces = std::min(source_.indentation(), indent);
    source_.take(static_cast<std::size_t>(spaces));
    if (source_.at_break() || source_.end()) {
      ++breaks;
      if (source_.end()) break;
      source_.take();
      continue;
    }
    source_.back_to(line);
    if (spaces < indent || source_.at_marker()) break;
    source_.take(static_cast<std::size_t>(spaces));
    const bool spaced = source_.at_blank(), fold = header.folded && any && !spaced && !was_spaced;
    out += fold && breaks == 1 ? std::string(1, ' ') : std::string(fold ? breaks - 1 : breaks, '\n');
    const std::size_t start = source_.at();
    source_.skip_line();
    out += source_.from(start);
    any = true;
    was_spaced = spaced;
    breaks = 1;  // the end of the file ends its last line
    if (!source_.end()) source_.take();
  }
  if (header.chomp == '+') out += std::string(breaks, '\n');
  if (header.chomp == ' ' && any && breaks > 0) out += '\n';
  const Mark stopped = source_.mark();
  source_.skip_blanks();
  const bool tabs = source_.indentation() != source_.column() && source_.indentation() <= n;
  if (tabs && source_.at_break() && source_.column() > 0) return tab_indents(stopped);
  source_.back_to(stopped);
  return true;
}

}  // namespace sweep::grid
