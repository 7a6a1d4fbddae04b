#include "bench_kernels/shape/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sweep::shape {
namespace {

using ::testing::HasSubstr;

std::string file_of(const std::string& json, std::size_t data_bytes = 0) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return bytes + json + std::string(data_bytes, '\0');
}

std::string refusal(const std::string& file) {
  const auto header = parse_safetensors_header(file, file.size());
  return header ? "accepted" : header.error().message;
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape, int begin,
                   int end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

TEST(SafetensorsHeader, ReadsTensorsInFileOrderWithMetadataAndScalars) {
  const std::string file =
      file_of("{\"__metadata__\":{\"format\":\"pt\"}," + tensor("b", "BF16", "[2,3]", 8, 20) + "," +
                  tensor("a", "F32", "[2]", 0, 8) + "," + tensor("s", "F32", "[]", 20, 24) + "}   ",
              24);
  const auto header = parse_safetensors_header(file, file.size());
  ASSERT_TRUE(header) << header.error().message;
  ASSERT_EQ(header->tensors.size(), 3u);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[1].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(header->tensors[2].end, file.size());
}

TEST(SafetensorsHeader, EmptyTensorsTakeNoBytes) {
  EXPECT_EQ(refusal(file_of(
                "{" + tensor("e", "F32", "[0,5]", 0, 0) + "," + tensor("a", "U8", "[1]", 0, 1) + "}", 1)),
            "accepted");
}

TEST(SafetensorsHeader, HugeLengthIsRefusedBeforeAnythingIsRead) {
  EXPECT_THAT(refusal(std::string(8, '\xff')), HasSubstr("more than"));
  EXPECT_THAT(refusal(std::string("\x10\0\0\0\0\0\0\0{}", 10)), HasSubstr("the file has 10"));
  EXPECT_THAT(refusal("abc"), HasSubstr("shorter than"));
}

TEST(SafetensorsHeader, OverlapHoleAndOutOfFileAreRefused) {
  const auto pair = [](int b, int e) {
    return "{" + tensor("a", "U8", "[4]", 0, 4) + "," + tensor("b", "U8", "[4]", b, e) + "}";
  };
  EXPECT_THAT(refusal(file_of(pair(2, 6), 6)), HasSubstr("inside the one before"));
  EXPECT_THAT(refusal(file_of(pair(5, 9), 9)), HasSubstr("leaving a hole"));
  EXPECT_THAT(refusal(file_of(pair(4, 8), 7)), HasSubstr("ends at byte 8"));
  EXPECT_THAT(refusal(file_of(pair(4, 8), 9)), HasSubstr("belong to none"));
}

TEST(SafetensorsHeader, SizeMustMatchShapeAndDtype) {
  EXPECT_THAT(refusal(file_of("{" + tensor("a", "F32", "[2]", 0, 4) + "}", 4)), HasSubstr("needs 8 bytes"));
  EXPECT_THAT(refusal(file_of("{" + tensor("a", "F31", "[1]", 0, 4) + "}", 4)),
              HasSubstr("unknown dtype 'F31'"));
  EXPECT_THAT(refusal(file_of("{" + tensor("a", "F32", "[4294967296,4294967296]", 0, 0) + "}")),
              HasSubstr("overflows"));
  EXPECT_THAT(refusal(file_of("{" + tensor("a", "U8", "[0]", 4, 0) + "}", 4)), HasSubstr("ends before"));
}

TEST(SafetensorsHeader, DuplicatesAreRefused) {
  const std::string one = tensor("a", "U8", "[0]", 0, 0);
  EXPECT_THAT(refusal(file_of("{" + one + "," + one + "}")), HasSubstr("appears twice"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})")),
              HasSubstr("twice"));
}

TEST(SafetensorsHeader, WrongTypesAndMissingKeysNameTheTensor) {
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[0]}})")), HasSubstr("tensor 'a' lacks"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}})")),
              HasSubstr("a negative number"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[0.5],"data_offsets":[0,0]}})")),
              HasSubstr("a fraction"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})")),
              HasSubstr("more than two"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}})")),
              HasSubstr("fewer than two"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":8,"shape":[0],"data_offsets":[0,0]}})")),
              HasSubstr("a number"));
  EXPECT_THAT(refusal(file_of(R"({"a":[1]})")), HasSubstr("an array"));
  EXPECT_THAT(refusal(file_of(R"({"a":1})")), HasSubstr("tensor 'a' is a number"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":1}})")),
              HasSubstr("a key other"));
  EXPECT_THAT(refusal(file_of(R"([])")), HasSubstr("does not begin"));
}

TEST(SafetensorsHeader, DeepJsonAndNonUtf8AndTruncationAreRefused) {
  EXPECT_THAT(refusal(file_of("{\"a\":" + std::string(1000000, '['))), HasSubstr("an array"));
  std::string objects = "{";
  for (int i = 0; i < 100000; ++i) objects += "\"a\":{";
  EXPECT_THAT(refusal(file_of(objects)), HasSubstr("a"));
  EXPECT_THAT(refusal(file_of("{\"\xff\xfe\":1}")), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8")")), HasSubstr("not valid JSON"));
}

}  // namespace
}  // namespace sweep::shape
