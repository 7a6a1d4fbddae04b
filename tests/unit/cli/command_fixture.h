// Commands run in this process over a store of their own: what they print and their exit code.
#pragma once
#include <fstream>
#include <sstream>

#include "orchestrator/cli/command.h"
#include "tests/unit/store/store_fixture.h"

namespace sweep::cli {

struct Answer {
  int code = 0;
  std::string out, err;
};

// `add` is that of the command, as add_explain; `words` begin with its name.
inline Answer answer_of(void (*add)(Registry), const std::vector<std::string>& words) {
  CLI::App app;
  std::ostringstream out, err;
  Io io{out, err};
  Action chosen;
  add({app, io, chosen});
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  app.parse(reversed);
  const int code = chosen();
  return {code, out.str(), err.str()};
}

class CommandTest : public store::StoreTest {
 protected:
  Answer ask(void (*add)(Registry), std::vector<std::string> words) {
    words.insert(words.end(), {"--db", path_.string()});
    return answer_of(add, words);
  }
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }
};

}  // namespace sweep::cli
