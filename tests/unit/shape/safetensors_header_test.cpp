#include "bench_kernels/shape/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expected.h"
#include "tests/support/error_matchers.h"

namespace sweep::shape {
namespace {

std::string file_of(const std::string& json, std::size_t data_bytes = 0) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return bytes + json + std::string(data_bytes, '\0');
}

Error refusal(const std::string& file) {
  return error_in(parse_safetensors_header(file, file.size()));
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
  const auto header = must(parse_safetensors_header(file, file.size()));
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[1].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(header.tensors[2].end, file.size());
}

TEST(SafetensorsHeader, EmptyTensorsTakeNoBytes) {
  const std::string file =
      file_of("{" + tensor("e", "F32", "[0,5]", 0, 0) + "," + tensor("a", "U8", "[1]", 0, 1) + "}", 1);
  EXPECT_TRUE(parse_safetensors_header(file, file.size()));
}

TEST(SafetensorsHeader, HugeLengthIsRefusedBeforeAnythingIsRead) {
  EXPECT_THAT(refusal(std::string(8, '\xff')), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(refusal(std::string("\x10\0\0\0\0\0\0\0{}", 10)), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(refusal("abc"), IsError(ErrorKind::kInvalidValue));
}

TEST(SafetensorsHeader, OverlapHoleAndOutOfFileAreRefused) {
  const auto pair = [](int b, int e) {
    return "{" + tensor("a", "U8", "[4]", 0, 4) + "," + tensor("b", "U8", "[4]", b, e) + "}";
  };
  EXPECT_THAT(refusal(file_of(pair(2, 6), 6)), IsError(ErrorKind::kInvalidValue, "b"));
  EXPECT_THAT(refusal(file_of(pair(5, 9), 9)), IsError(ErrorKind::kInvalidValue, "b"));
  EXPECT_THAT(refusal(file_of(pair(4, 8), 7)), IsError(ErrorKind::kInvalidValue, "b"));
  EXPECT_THAT(refusal(file_of(pair(4, 8), 9)), IsError(ErrorKind::kInvalidValue));
}

TEST(SafetensorsHeader, SizeMustMatchShapeAndDtype) {
  EXPECT_THAT(refusal(file_of("{" + tensor("a", "F32", "[2]", 0, 4) + "}", 4)),
              IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of("{" + tensor("a", "F31", "[1]", 0, 4) + "}", 4)),
              IsError(ErrorKind::kUnsupported, "a"));
  EXPECT_THAT(refusal(file_of("{" + tensor("a", "F32", "[4294967296,4294967296]", 0, 0) + "}")),
              IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of("{" + tensor("a", "U8", "[0]", 4, 0) + "}", 4)),
              IsError(ErrorKind::kInvalidValue, "a"));
}

TEST(SafetensorsHeader, DuplicatesAreRefused) {
  const std::string one = tensor("a", "U8", "[0]", 0, 0);
  EXPECT_THAT(refusal(file_of("{" + one + "," + one + "}")), IsError(ErrorKind::kConflict, "a"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})")),
              IsError(ErrorKind::kConflict, "a"));
}

TEST(SafetensorsHeader, WrongTypesAndMissingKeysNameTheTensor) {
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[0]}})")),
              IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}})")),
              IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[0.5],"data_offsets":[0,0]}})")),
              IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})")),
              IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}})")),
              IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":8,"shape":[0],"data_offsets":[0,0]}})")),
              IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of(R"({"a":[1]})")), IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of(R"({"a":1})")), IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":1}})")),
              IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of(R"([])")), IsError(ErrorKind::kInvalidValue));
}

TEST(SafetensorsHeader, DeepJsonAndNonUtf8AndTruncationAreRefused) {
  EXPECT_THAT(refusal(file_of("{\"a\":" + std::string(1000000, '['))),
              IsError(ErrorKind::kInvalidValue, "a"));
  std::string objects = "{";
  for (int i = 0; i < 100000; ++i) objects += "\"a\":{";
  EXPECT_THAT(refusal(file_of(objects)), IsError(ErrorKind::kInvalidValue, "a"));
  EXPECT_THAT(refusal(file_of("{\"\xff\xfe\":1}")), IsError(ErrorKind::kInvalidValue));
  EXPECT_THAT(refusal(file_of(R"({"a":{"dtype":"U8")")), IsError(ErrorKind::kInvalidValue));
}

}  // namespace
}  // namespace sweep::shape
