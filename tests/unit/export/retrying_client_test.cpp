#include "orchestrator/export/retrying_client.h"

#include <gtest/gtest.h>

#include "tests/support/must.h"

namespace sweep::exports {
namespace {

bool busy(long status) {
  return status == 429 || status >= 500;
}

// A network that answers from a script and a clock that only counts.
struct World {
  std::vector<tl::expected<Reply, WireError>> script;
  std::vector<double> pauses;
  std::vector<std::string> notes, bodies;
  bool interrupt = false;

  RetryingClient client(RetryPolicy patience = {}) {
    return RetryingClient(
        {[this](const Request& request) -> tl::expected<Reply, WireError> {
           bodies.push_back(request.body);
           return bodies.size() <= script.size() ? script[bodies.size() - 1] : Reply{200, "ok", {}};
         },
         [this](double seconds) { return pauses.push_back(seconds), !interrupt; },
         [this](const std::string& sentence) { notes.push_back(sentence); }},
        patience);
  }
};

const Request kRequest{"POST", "http://x/", "body"};

tl::unexpected<WireError> broken(WireError::Kind kind) {
  return tl::unexpected(WireError{kind, "broken"});
}

TEST(RetryingClient, PausesDoubleWithJitterAndTheSameBodyGoesOut) {
  World world;
  world.script = {Reply{500, "", {}}, Reply{503, "", {}}, broken(WireError::kLost)};
  const auto reply = must(world.client().send(kRequest, busy));
  EXPECT_EQ(reply.body, "ok");
  ASSERT_EQ(world.pauses.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GE(world.pauses[i], 0.5 * (1 << i));
    EXPECT_LE(world.pauses[i], 0.625 * (1 << i));
  }
  EXPECT_EQ(world.bodies, std::vector<std::string>(4, "body"));
}

TEST(RetryingClient, ARetryAfterWinsAndOneTooLongEndsIt) {
  World world;
  world.script = {Reply{429, "", 7.0}, Reply{429, "", 3600.0}};
  const auto reply = world.client().send(kRequest, busy);
  ASSERT_FALSE(reply);
  EXPECT_EQ(world.pauses, std::vector<double>{7.0});
  EXPECT_NE(reply.error().sentence.find("3600 s"), std::string::npos) << reply.error().sentence;
}

TEST(RetryingClient, AnAnswerThatIsFinalIsHandedOutAtOnce) {
  World world;
  world.script = {Reply{404, "gone", {}}};
  EXPECT_EQ(world.client().send(kRequest, busy)->status, 404);
  EXPECT_TRUE(world.pauses.empty());
}

TEST(RetryingClient, GivesUpAfterItsTriesAndSoonerWithoutAServer) {
  World busy_world, empty_world, wrong_world;
  busy_world.script.assign(50, Reply{500, "<html><b>oops</b></html>", {}});
  empty_world.script.assign(50, broken(WireError::kUnreachable));
  wrong_world.script.assign(50, broken(WireError::kFinal));
  const auto reply = busy_world.client().send(kRequest, busy);
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().sentence.find("HTTP 500: oops; given up after 8 tries"), std::string::npos);
  EXPECT_FALSE(empty_world.client().send(kRequest, busy));
  EXPECT_EQ(empty_world.bodies.size(), 4u);
  EXPECT_FALSE(wrong_world.client().send(kRequest, busy));
  EXPECT_EQ(wrong_world.bodies.size(), 1u);
}

TEST(RetryingClient, CtrlCEndsAPause) {
  World world;
  world.script.assign(9, Reply{500, "", {}});
  world.interrupt = true;
  EXPECT_EQ(world.client().send(kRequest, busy).error().kind, DeliveryError::kInterrupted);
  EXPECT_EQ(world.bodies.size(), 1u);
}

TEST(RetryingClient, WhatMayHaveBeenCarriedOutIsLookedForBeforeItIsSentAgain) {
  int looks = 0;
  const auto found = [&]() -> Delivered<std::optional<Reply>> { return ++looks, Reply{200, "found", {}}; };
  World lost, unreachable;
  lost.script = {broken(WireError::kLost)};
  EXPECT_EQ(lost.client().send(kRequest, busy, found)->body, "found");
  EXPECT_EQ(lost.bodies.size(), 1u);
  unreachable.script = {broken(WireError::kUnreachable)};
  EXPECT_EQ(unreachable.client().send(kRequest, busy, found)->body, "ok");
  EXPECT_EQ(looks, 1);
}

TEST(RetryingClient, ServersWordsAreUnpackedAndCut) {
  EXPECT_EQ(words_of({400, R"({"error_code":"X","message":"no such run"})", {}}), "HTTP 400: no such run");
  EXPECT_EQ(words_of({200, R"({"errors":[{"message":"bad"}]})", {}}), "HTTP 200: bad");
  EXPECT_EQ(words_of({403, R"({"error":{"message":"no"}})", {}}), "HTTP 403: no");
  EXPECT_EQ(words_of({500, "<p>a\n\x1b[31m b</p>", {}}), "HTTP 500: a [31m b");
  EXPECT_LT(words_of({500, std::string(9999, 'x'), {}}).size(), 400u);
  EXPECT_EQ(words_of({401, R"({"message":"no: hunter2"})", {}, {"Basic aHVudGVyMg==", {"hunter2"}}}),
            "HTTP 401: no: ***");
}

TEST(Address, OnlyWholeHttpAddressesWithoutSecretsAreTaken) {
  EXPECT_EQ(checked_base("https://h.example:8080/mlflow//", "--uri").value(),
            "https://h.example:8080/mlflow");
  for (const char* bad : {"", "h.example", "ftp://h", "https://", "http://a b", "https://h?x=1",
                          "https://h#f", "http://h\n", "http://h:99999", "http://[::1"})
    EXPECT_FALSE(checked_base(bad, "--uri")) << bad;
  for (const char* secret :
       {"https://me:hunter2@h", "https://me:hunter2@h:99999", "https://a:hunter2@b@c d"}) {
    const auto refused = checked_base(secret, "--uri");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message.find("hunter2"), std::string::npos);
  }
  EXPECT_TRUE(checked_base("https://h/team@home", "--uri"));
  EXPECT_EQ(host_of("https://h.example:8080/x"), "h.example");
  EXPECT_EQ(host_of("http://[::1]:5000"), "::1");
  EXPECT_TRUE(sends_in_the_clear("http://h.example"));
  EXPECT_TRUE(sends_in_the_clear("HTTP://h.example"));
  EXPECT_FALSE(sends_in_the_clear("http://127.0.0.1:5000"));
  EXPECT_FALSE(sends_in_the_clear("https://h.example"));
}

}  // namespace
}  // namespace sweep::exports
