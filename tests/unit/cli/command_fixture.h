// Commands run in this process over a store of their own: what they print and their exit code.
#pragma once
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "orchestrator/cli/app.h"
#include "orchestrator/cli/command.h"
#include "tests/unit/store/store_fixture.h"

namespace sweep::cli {

struct Answer {
  int code = 0;
  std::string out, err;
};

// `words` begin with the command.
inline Answer sweep(const std::vector<std::string>& words) {
  std::ostringstream out, err;
  Io io{out, err};
  const int code = run(io, words);
  return {code, out.str(), err.str()};
}

// Columns by name; no cell of these tests holds a quote or the end of a line.
inline std::vector<std::map<std::string, std::string>> csv_rows(const std::string& text) {
  std::vector<std::map<std::string, std::string>> out;
  std::vector<std::string> head;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (const char c : line)
      if (c == '"')
        quoted = !quoted;
      else if (c == ',' && !quoted)
        cells.emplace_back();
      else
        cells.back() += c;
    if (head.empty()) {
      head = cells;
      continue;
    }
    auto& row = out.emplace_back();
    for (std::size_t i = 0; i < head.size(); ++i) row[head[i]] = i < cells.size() ? cells[i] : "";
  }
  return out;
}

class CommandTest : public store::StoreTest {
 protected:
  Answer ask(std::vector<std::string> words) const {
    words.insert(words.end(), {"--db", path_.string()});
    return sweep(words);
  }
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }
};

}  // namespace sweep::cli
