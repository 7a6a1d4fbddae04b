// Output of a host's start files belongs to no answer; paths in a home folder there.
#include <gtest/gtest.h>

#include "orchestrator/launch/ssh/banner_skipper.h"
#include "orchestrator/launch/ssh/ssh_shell.h"

namespace sweep::launch {
namespace {

const std::string kMarked(BannerSkipper::kMark);

TEST(BannerSkipper, WhatComesBeforeTheMarkIsKeptApart) {
  BannerSkipper greeting;
  EXPECT_EQ(greeting.take("welcome\n" + kMarked + "answer\n"), "answer\n");
  EXPECT_TRUE(greeting.past());
  EXPECT_EQ(greeting.said(), "welcome\n");
  EXPECT_EQ(greeting.take(kMarked), kMarked) << "the answer may say anything";
}

TEST(BannerSkipper, TheMarkMayArriveInPiecesAndAfterAnUnfinishedLine) {
  const std::string whole = "no end of line" + kMarked + std::string("\0\1frame", 7);
  BannerSkipper greeting;
  std::string after;
  for (const char byte : whole) after += greeting.take(std::string_view(&byte, 1));
  EXPECT_EQ(after, std::string("\0\1frame", 7));
}

TEST(BannerSkipper, OfALongGreetingTheLastIsKept) {
  BannerSkipper greeting;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(greeting.take("a long line of a greeting\n"), "");
  EXPECT_EQ(greeting.take("This account is currently not available.\n"), "");
  EXPECT_FALSE(greeting.past());
  EXPECT_LE(greeting.said().size(), 4096u);
  EXPECT_TRUE(greeting.said().ends_with("not available.\n"));
  EXPECT_EQ(greeting.take(kMarked + "x"), "x");
}

TEST(FarPath, TheHomeThereIsNotTheHomeHere) {
  EXPECT_EQ(remote_path("~/sweep", "/home/me"), "/home/me/sweep");
  EXPECT_EQ(remote_path("/x/~/y", "/home/me"), "/x/~/y");
  EXPECT_EQ(remote_word("~/my sweep"), "\"$HOME\"'/my sweep'");
  EXPECT_EQ(remote_word("/x y"), "'/x y'");
  EXPECT_EQ(remote_word("~"), "\"$HOME\"");
  EXPECT_EQ(remote_path("~", "/home/me"), "/home/me");
}

}  // namespace
}  // namespace sweep::launch
