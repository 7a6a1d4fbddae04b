// sweep predict and sweep replay as people type them: fits, what a file says beside its rows, and what is refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/unit/cli/command_fixture.h"

namespace sweep::cli {
namespace {

using Rows = std::vector<std::map<std::string, std::string>>;

class Predicted : public CommandTest {
 protected:
  // The rows as `sweep predict` with these words answers them.
  static Rows rows_of(std::vector<std::string> words) {
    words.insert(words.begin(), "predict");
    const Answer said = sweep(words);
    EXPECT_EQ(said.code, kAnswered) << said.err;
    return csv_rows(said.out);
  }

  static double number(const std::map<std::string, std::string>& row, const char* column) {
    const std::string& cell = row.at(column);
    return cell.empty() ? 0 : std::stod(cell);
  }

  nlohmann::json saved() const { return nlohmann::json::parse(std::ifstream(profile())); }
  std::string profile() const { return (dir_ / "p.json").string(); }
};

TEST_F(Predicted, AnEncoderDecoderIsRefusedByProfilesOfTrainers) {
  const std::string path = file("c.csv", "model,dp,zero,seq_len\nblenderbot-400m,8,3,128\n");
  for (const char* trainer : {"torchrun", "nanotron", "megatron", "huggingface"}) {
    const Rows told = rows_of({"--configs", path, "--trainer", trainer});
    EXPECT_EQ(told.at(0).at("fits"), "false") << trainer;
    EXPECT_EQ(told.at(0).at("reason").find("encoder"), 0u) << trainer;
  }
  EXPECT_EQ(rows_of({"--configs", path}).at(0).at("fits"), "true") << "the built-in step has it";
}

}  // namespace
}  // namespace sweep::cli
