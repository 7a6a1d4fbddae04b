#include "orchestrator/export/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "base/expected.h"
#include "tests/support/error_matchers.h"

namespace sweep::exports {
namespace {

namespace fs = std::filesystem;

const std::string kKey(40, 'k');

class CredentialsTest : public ::testing::Test {
 protected:
  CredentialsTest() {
    sources_.environment = [this](const char* name) -> std::optional<std::string> {
      const auto it = variables_.find(name);
      return it == variables_.end() ? std::nullopt : std::optional(it->second);
    };
  }
  ~CredentialsTest() override { fs::remove(file_); }
  void file(const std::string& text, fs::perms mode = fs::perms::owner_read | fs::perms::owner_write) {
    std::ofstream(file_) << text;
    fs::permissions(file_, mode);
    sources_.key_file = file_;
  }
  static std::string said(const Expected<Credentials>& got) { return got ? "" : got.error().message; }

  fs::path file_ = fs::path(::testing::TempDir()) / ("keys-" + std::to_string(::getpid()));
  std::map<std::string, std::string> variables_;
  KeySources sources_;
};

TEST_F(CredentialsTest, TheEnvironmentComesFirst) {
  file("machine h login user password " + std::string(40, 'f') + "\n");
  variables_["WANDB_API_KEY"] = kKey;
  EXPECT_EQ(wandb_credentials(sources_, "h")->authorization, "Basic " + base64("api:" + kKey));
}

TEST_F(CredentialsTest, TheEntryOfTheHostCountsThenTheDefault) {
  file("# machine h login x password old\nmachine other login a password " + std::string(40, 'o') +
       "\nmachine h\n  login user\n  password " + kKey + "\ndefault login d password " +
       std::string(40, 'd') + "\n");
  EXPECT_EQ(wandb_credentials(sources_, "h")->authorization, "Basic " + base64("api:" + kKey));
  EXPECT_EQ(wandb_credentials(sources_, "third")->authorization,
            "Basic " + base64("api:" + std::string(40, 'd')));
}

TEST_F(CredentialsTest, AFileOthersMayReadIsRefusedWithTheCommandThatMendsIt) {
  for (const auto mode : {fs::perms::group_read, fs::perms::others_read, fs::perms::group_write}) {
    file("machine h login user password " + kKey, mode | fs::perms::owner_read | fs::perms::owner_write);
    const std::string message = said(wandb_credentials(sources_, "h"));
    EXPECT_THAT(error_in(wandb_credentials(sources_, "h")), IsError(ErrorKind::kRefused, file_.string()));
    EXPECT_EQ(message.find(kKey), std::string::npos);
  }
  EXPECT_TRUE(mlflow_credentials(sources_, "unmentioned"))
      << "a file without a key for this host is harmless";
}

TEST_F(CredentialsTest, WhatIsNoKeyIsRefusedWithoutShowingIt) {
  EXPECT_THAT(error_in(wandb_credentials(sources_, "h")), IsError(ErrorKind::kMissing, "h"));
  for (const std::string& bad : {std::string("short"), kKey + "\r\nX-Other: 1", kKey + " "}) {
    variables_["WANDB_API_KEY"] = bad;
    const std::string message = said(wandb_credentials(sources_, "h"));
    EXPECT_FALSE(message.empty());
    EXPECT_EQ(message.find(bad), std::string::npos);
  }
  sources_.key_file = "/nowhere/keys";
  variables_.clear();
  EXPECT_THAT(error_in(wandb_credentials(sources_, "h")), IsError(ErrorKind::kNotFound, "/nowhere/keys"));
}

TEST_F(CredentialsTest, MlflowTakesPasswordsThenTokensThenNothing) {
  EXPECT_EQ(mlflow_credentials(sources_, "h")->authorization, "");
  file("machine h login __token__ password filetoken");
  EXPECT_EQ(mlflow_credentials(sources_, "h")->authorization, "Bearer filetoken");
  variables_["MLFLOW_TRACKING_TOKEN"] = "abc";
  EXPECT_EQ(mlflow_credentials(sources_, "h")->authorization, "Bearer abc");
  variables_["MLFLOW_TRACKING_USERNAME"] = "me";
  EXPECT_THAT(error_in(mlflow_credentials(sources_, "h")), IsError(ErrorKind::kMissing, "h"));
  variables_["MLFLOW_TRACKING_PASSWORD"] = "pass word";
  EXPECT_EQ(mlflow_credentials(sources_, "h")->authorization, "Basic " + base64("me:pass word"));
}

TEST_F(CredentialsTest, EveryFormOfTheKeyIsRemovedFromServerMessages) {
  variables_["WANDB_API_KEY"] = kKey;
  const auto key = wandb_credentials(sources_, "h");
  const std::string text = key->redacted("you sent " + key->authorization + " with " + kKey + kKey);
  EXPECT_EQ(text, "you sent Basic *** with ******");
}

TEST(Base64, OfEveryLengthModuloThree) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob\xff\xfe"), "Zm9vYv/+");
}

}  // namespace
}  // namespace sweep::exports
