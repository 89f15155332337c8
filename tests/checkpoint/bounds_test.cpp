// Every bound of what a checkpoint may hold, at its last good value and one beyond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/pickle_format.hpp"
#include "checkpoint/pickle_reader.hpp"
#include "checkpoint/tensor.hpp"
#include "checkpoint/zip_writer.hpp"
#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
constexpr auto kSmallest = std::numeric_limits<std::int64_t>::min();

Value read(const std::string& opcodes) {
  const auto pickle = "\x80\x02"s + opcodes;
  return read_pickle(std::as_bytes(std::span(pickle))).root;
}

std::string refusal_of(const std::string& opcodes) {
  return message_of<Error>([&] { read(opcodes); });
}

// The low bytes of a number, least first.
std::string little_endian(std::int64_t number, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i)
    text.push_back(static_cast<char>(i < 8 ? number >> 8 * i & 255 : number < 0 ? 255 : 0));
  return text;
}

std::int64_t integer(const std::string& opcodes) {
  const auto value = read(opcodes + ".");
  const auto* number = value.get_if<std::int64_t>();
  if (number == nullptr) throw Error("not an integer of 64 bits");  // fails the test
  return *number;
}

bool fits(std::int64_t number, std::size_t bytes) {
  return bytes >= 8 ||
         (number >= -(std::int64_t{1} << (8 * bytes - 1)) && number < std::int64_t{1} << (8 * bytes - 1));
}

TEST(PickleIntegers, keep_their_sign_in_any_number_of_bytes) {
  int read_count = 0;
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{127}, std::int64_t{128}, std::int64_t{255},
        std::int64_t{256}, std::int64_t{32767}, std::int64_t{32768}, std::int64_t{1} << 40, kLargest,
        std::int64_t{-1}, std::int64_t{-128}, std::int64_t{-129}, std::int64_t{-255}, std::int64_t{-256},
        std::int64_t{-32768}, std::int64_t{-32769}, -(std::int64_t{1} << 40), kSmallest}) {
    for (std::size_t bytes = 1; bytes <= 8; ++bytes) {
      if (!fits(number, bytes)) continue;
      const auto digits = little_endian(number, bytes);
      EXPECT_EQ(integer("\x8a"s + static_cast<char>(bytes) + digits), number) << bytes;
      EXPECT_EQ(integer("\x8b"s + static_cast<char>(bytes) + "\0\0\0"s + digits), number) << bytes;
      ++read_count;
    }
    if (fits(number, 4)) {
      EXPECT_EQ(integer("J" + little_endian(number, 4)), number);
    }
  }
  EXPECT_GT(read_count, 80);
  EXPECT_EQ(integer("\x8a\0"s), 0);
  EXPECT_EQ(integer("\x8b\0\0\0\0"s), 0);
  EXPECT_EQ(integer("J\xff\xff\xff\x7f"), 2147483647);
  EXPECT_EQ(integer("J\0\0\0\x80"s), -2147483648);
  EXPECT_EQ(integer("K\xff"), 255);
  EXPECT_EQ(integer("M\xff\xff"), 65535);
}

TEST(PickleIntegers, of_nine_to_255_bytes_are_kept_as_they_are) {
  for (const std::size_t bytes : {std::size_t{9}, std::size_t{255}}) {
    const auto digits = little_endian(-3, bytes);
    for (const auto& opcode :
         {"\x8a"s + static_cast<char>(bytes), "\x8b"s + static_cast<char>(bytes) + "\0\0\0"s}) {
      const auto value = read(opcode + digits + ".");
      ASSERT_NE(value.get_if<BigInteger>(), nullptr);
      EXPECT_EQ(value.get_if<BigInteger>()->little_endian, digits);
    }
  }
  EXPECT_EQ(refusal_of("\x8b\0\1\0\0"s + std::string(256, '\1') + "."),
            "the pickle holds an integer of 256 bytes (at most 255)");
}

TEST(PickleNumbers, of_floating_point_keep_every_bit) {
  EXPECT_EQ(*read("G\x3f\xf8\0\0\0\0\0\1."s).get_if<double>(), 1.5 + 0x1p-52);
  const auto zero = *read("G\x80\0\0\0\0\0\0\0."s).get_if<double>();
  EXPECT_TRUE(zero == 0 && std::signbit(zero));
}

TEST(PickleBytes, are_taken_up_to_the_last_and_no_further) {
  const auto pickle = "\x80\x02](K\x01J\x01\x02\x03\x04X\x02\0\0\0abG\0\0\0\0\0\0\0\0M\1\2\x8a\2\1\2e."s;
  for (std::size_t length = 0; length < pickle.size(); ++length) {
    // Memory of exactly this length, so that a sanitizer sees what lies behind it being read.
    const std::vector<char> cut(pickle.begin(), pickle.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THROW(read_pickle(std::as_bytes(std::span(cut))), Error) << length;
  }
  const auto whole = read_pickle(std::as_bytes(std::span(pickle)));
  EXPECT_EQ(whole.consumed, pickle.size());
  EXPECT_EQ(whole.root.get_if<List>()->items.size(), 6U);
  EXPECT_EQ(refusal_of("X\3\0\0\0ab"s), "the pickle is cut short: 3 bytes expected at byte 7");
}

TEST(PickleNames, end_within_256_bytes) {
  EXPECT_THAT(refusal_of("c" + std::string(255, 'm') + "\nn\n."), HasSubstr("it refers to mmm"));
  EXPECT_EQ(refusal_of("c" + std::string(256, 'm') + "\nn\n."), "a name of the pickle does not end (byte 3)");
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// `depth` containers, each within the one before.
std::vector<std::string> nested(int depth) {
  const auto ordered = "ccollections\nOrderedDict\n)R"s;
  return {repeated("]", depth) + repeated("a", depth - 1),
          repeated("](", depth - 1) + "]" + repeated("e", depth - 1),
          ")" + repeated("\x85", depth - 1),
          repeated("N", depth - 1) + ")" + repeated("\x86", depth - 1),
          repeated("NN", depth - 1) + ")" + repeated("\x87", depth - 1),
          repeated("]", 32) + ")" + repeated("\x85", depth - 33) + repeated("a", 32),
          repeated("(", depth - 1) + ")" + repeated("t", depth - 1),
          repeated("}K\1", depth - 1) + "}" + repeated("s", depth - 1),
          repeated("}(K\1", depth - 1) + "}" + repeated("u", depth - 1),
          repeated(ordered + "K\1", depth - 1) + ordered + repeated("s", depth - 1)};
}

TEST(PickleDepth, is_64_containers_whatever_they_are) {
  for (const auto& opcodes : nested(kMaxDepth)) EXPECT_EQ(refusal_of(opcodes + "."), "(nothing was thrown)");
  for (const auto& opcodes : nested(kMaxDepth + 1))
    EXPECT_EQ(refusal_of(opcodes + "."), "the pickle nests containers deeper than 64");
}

TEST(PickleContainers, are_as_many_as_the_bound_says) {
  const auto containers = [](std::size_t count) { return "](" + std::string(count - 1, ')') + "e."; };
  EXPECT_EQ(refusal_of(containers(kMaxContainers)), "(nothing was thrown)");
  EXPECT_EQ(refusal_of(containers(kMaxContainers + 1)),
            fmt::format("the pickle makes more than {} containers", kMaxContainers));
}

// A float32 tensor, each part of it written as an opcode.
std::string tensor_of(std::int64_t elements, std::int64_t offset, const std::vector<std::int64_t>& shape,
                      const std::vector<std::int64_t>& strides) {
  const auto number = [](std::int64_t value) { return "\x8a\x08"s + little_endian(value, 8); };
  const auto tuple = [&](const std::vector<std::int64_t>& values) {
    auto text = "("s;
    for (const auto value : values) text += number(value);
    return text + "t";
  };
  return "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"s +
         "0X\3\0\0\0cpu"s + number(elements) + "tQ" + number(offset) + tuple(shape) + tuple(strides) +
         "\x89NtR.";
}

struct View {
  std::int64_t needs;  // elements of the storage
  std::int64_t offset;
  std::vector<std::int64_t> shape, strides;
};

TEST(TensorView, reaches_to_the_last_element_of_its_storage_and_no_further) {
  for (const auto& [needs, offset, shape, strides] :
       {View{6, 0, {6}, {1}}, View{6, 0, {2, 3}, {3, 1}}, View{6, 0, {3, 2}, {1, 3}},
        View{7, 1, {2, 3}, {3, 1}}, View{6, 1, {3}, {2}}, View{6, 5, {}, {}}, View{6, 5, {1, 1}, {100, 100}},
        View{6, 5, {9}, {0}}, View{6, 6, {0}, {1}}, View{6, 6, {4, 0}, {1, 1}}}) {
    SCOPED_TRACE(fmt::format("{} elements from {} in {} dimensions", needs, offset, shape.size()));
    EXPECT_EQ(refusal_of(tensor_of(needs, offset, shape, strides)), "(nothing was thrown)");
    EXPECT_EQ(refusal_of(tensor_of(needs - 1, offset, shape, strides)),
              fmt::format("a tensor reaches to element {} of a storage of {}", needs, needs - 1));
    const TensorValue tensor{DType::float32, shape, strides, offset,
                             make_storage(std::vector<std::byte>(static_cast<std::size_t>(needs) * 4 - 1))};
    EXPECT_THROW(contiguous_bytes(tensor), Error);  // the last element is cut
  }
}

TEST(TensorView, has_no_negative_number_and_at_most_16_dimensions) {
  EXPECT_EQ(refusal_of(tensor_of(6, -1, {1}, {1})), "a tensor has the storage offset -1");
  EXPECT_EQ(refusal_of(tensor_of(6, 0, {-1}, {1})), "a tensor has the negative size -1");
  EXPECT_EQ(refusal_of(tensor_of(6, 5, {2}, {-1})), "a tensor has the negative stride -1");
  EXPECT_EQ(refusal_of(tensor_of(6, 0, {1, 1}, {1})), "a tensor has 2 sizes but 1 strides");
  EXPECT_EQ(refusal_of(tensor_of(-1, 0, {0}, {1})), "storage '0' has -1 elements");
  const std::vector<std::int64_t> most(16, 1), more(17, 1);
  EXPECT_EQ(refusal_of(tensor_of(1, 0, most, most)), "(nothing was thrown)");
  EXPECT_THAT(refusal_of(tensor_of(1, 0, more, more)), HasSubstr("no tuple of at most 16 integers"));
  const auto storage = std::make_shared<Storage>();
  EXPECT_NO_THROW(validate_view({DType::float32, most, most, 0, storage}, 1));
  EXPECT_THROW(validate_view({DType::float32, more, more, 0, storage}, 1), Error);
}

TEST(TensorView, does_not_leave_64_bits) {
  constexpr auto kMost = kLargest / 8;  // elements: their bytes fit
  EXPECT_EQ(refusal_of(tensor_of(1, 0, {kMost}, {0})), "(nothing was thrown)");
  EXPECT_EQ(refusal_of(tensor_of(1, 0, {kMost + 1}, {0})), "a tensor's sizes multiply beyond 64 bits");
  EXPECT_EQ(refusal_of(tensor_of(1, 0, {kMost / 2, 2}, {0, 0})), "(nothing was thrown)");
  EXPECT_EQ(refusal_of(tensor_of(1, 0, {kMost / 2 + 1, 2}, {0, 0})),
            "a tensor's sizes multiply beyond 64 bits");
  EXPECT_EQ(refusal_of(tensor_of(1, 0, {2}, {kLargest})),
            "a tensor reaches to element 9223372036854775808 of a storage of 1");
  EXPECT_EQ(refusal_of(tensor_of(1, 1, {2}, {kLargest})), "a tensor's strides reach beyond 64 bits");
  EXPECT_EQ(refusal_of(tensor_of(1, 1, {3}, {kLargest / 2})),
            "a tensor reaches to element 9223372036854775808 of a storage of 1");
  EXPECT_EQ(refusal_of(tensor_of(1, 2, {3}, {kLargest / 2})), "a tensor's strides reach beyond 64 bits");
  EXPECT_EQ(refusal_of(tensor_of(kMost, 0, {1}, {1})), "(nothing was thrown)");
  EXPECT_EQ(refusal_of(tensor_of(kMost + 1, 0, {1}, {1})),
            fmt::format("storage '0' has {} elements", kMost + 1));
}

// At the bound itself a tensor takes a gigabyte, too much for a test.
TEST(ContiguousBytes, repeats_no_elements_beyond_its_bound) {
  const auto of = [](std::int64_t count, std::size_t storage_bytes) {
    return TensorValue{DType::uint8, {count}, {0}, 0, make_storage(std::vector<std::byte>(storage_bytes))};
  };
  EXPECT_EQ(contiguous_bytes(of(1000, 1)).size(), 1000U);
  EXPECT_EQ(message_of<Error>([&] { contiguous_bytes(of((1 << 30) + 1, 1)); }),
            "a tensor repeats its elements to 1073741825 bytes");
}

std::vector<std::byte> archive_of(const std::string& pickle, std::size_t data_bytes) {
  std::vector<std::byte> archive;
  ZipWriter zip(
      [&](std::span<const std::byte> bytes) { archive.insert(archive.end(), bytes.begin(), bytes.end()); });
  zip.add("archive/data.pkl", pickle);
  const std::vector<std::byte> data(data_bytes, std::byte{1});
  zip.add("archive/data/0", std::span<const std::byte>(data));
  zip.add("archive/version", "3\n");
  zip.finish();
  return archive;
}

TEST(TorchArchive, has_as_many_bytes_as_the_tensors_elements_and_nothing_behind_the_pickle) {
  const auto error = [](const std::string& pickle, std::size_t data_bytes) {
    const auto archive = archive_of("\x80\x02" + pickle, data_bytes);
    return message_of<Error>([&] { read_checkpoint_bytes(archive); });
  };
  const auto pickle = tensor_of(6, 0, {2, 3}, {3, 1});
  EXPECT_EQ(error(pickle, 24), "(nothing was thrown)");
  for (const std::size_t bytes : {20, 23, 25, 28}) {
    EXPECT_EQ(error(pickle, bytes),
              fmt::format("zip entry 'archive/data/0' has {} bytes, 6 elements of float32 take 24", bytes));
  }
  // The file as a whole is good but for a tensor that reaches one element too far.
  EXPECT_EQ(error(tensor_of(6, 1, {2, 3}, {3, 1}), 24), "a tensor reaches to element 7 of a storage of 6");
  EXPECT_EQ(error(pickle + ".", 24), "data.pkl goes on after its end");
}

}  // namespace
}  // namespace ssd
