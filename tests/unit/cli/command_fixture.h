// Commands run in this process over a store of their own: what they print and their exit code.
#pragma once
#include <fstream>
#include <sstream>

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
