// What is written reads again, and has the form that FORMAT.md gives it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <limits>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/flatten.hpp"
#include "checkpoint/pickle_format.hpp"
#include "checkpoint/pickle_reader.hpp"
#include "checkpoint/pickle_writer.hpp"
#include "checkpoint/torch_archive.hpp"
#include "checkpoint/zip_reader.hpp"
#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

std::vector<std::byte> archive_of(const Value& root) {
  std::vector<std::byte> bytes;
  write_torch_archive(
      root, [&](std::span<const std::byte> piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
  return bytes;
}

Value round_trip(const Value& root) {
  return read_checkpoint_bytes(archive_of(root));
}

template <class T>
std::vector<std::byte> bytes_of_numbers(const std::vector<T>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

TEST(WriteCheckpoint, every_kind_of_value_reads_again) {
  Dict dict, ordered(Dict::Kind::ordered), counter(Dict::Kind::counter);
  dict.set("text", "d\xc3\xa9j\xc3\xa0 vu \xf0\x9f\x98\x80");
  dict.set(-7, "a negative key");
  ordered.set("b", 1);
  ordered.set("a", 2);
  counter.set(43, 1);
  List root;
  root.items = {Value(),
                true,
                false,
                List{},
                Tuple{},
                Dict{},
                Dict(Dict::Kind::ordered),
                Dict(Dict::Kind::counter),
                Tuple{{1, 2.5, "x", Tuple{}}},
                List{{List{{List{}}}}},
                Bytes{std::string("\x00\x7f\x80\xff", 4)},
                "",
                dict,
                ordered,
                counter};
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{255}, std::int64_t{256}, std::int64_t{-1}, std::int64_t{2147483647},
        std::int64_t{2147483648}, std::int64_t{-2147483649}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    root.items.emplace_back(number);
  }
  for (const double number : {0.0, -0.0, 2.6e-3, 5e-324, 1e308, std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(), std::nan("")}) {
    root.items.emplace_back(number);
  }
  const auto again = round_trip(root);
  EXPECT_EQ(text_of_value(again), text_of_value(root));
  for (std::size_t i = 0; i < root.items.size(); ++i) {
    EXPECT_EQ(again.get_if<List>()->items[i].kind_name(), root.items[i].kind_name());
  }
}

TEST(WriteCheckpoint, tensors_of_every_dtype_and_shape_read_again) {
  Dict root;
  for (const auto dtype : {DType::float64, DType::float32, DType::float16, DType::bfloat16, DType::int64,
                           DType::int32, DType::int16, DType::int8, DType::uint8, DType::boolean}) {
    std::vector<std::byte> bytes(6 * element_bytes(dtype), std::byte{1});
    root.set(std::string(dtype_name(dtype)), make_tensor(dtype, {2, 3}, bytes));
  }
  root.set("empty", make_tensor(DType::float32, {3, 0, 2}, {}));
  root.set("scalar", make_tensor(DType::int64, {}, bytes_of_numbers<std::int64_t>({42})));
  EXPECT_EQ(text_of_value(round_trip(root)), text_of_value(root));
}

TEST(WriteCheckpoint, views_keep_their_strides_and_share_their_storage) {
  auto rows = make_tensor(DType::float32, {2, 3}, bytes_of_numbers<float>({0, 1, 2, 3, 4, 5}));
  auto columns = rows;
  columns.shape = {3, 2};
  columns.strides = {1, 3};
  auto last = rows;
  last.shape = {1};
  last.strides = {1};
  last.storage_offset = 5;
  Dict root;
  root.set("rows", rows);
  root.set("columns", columns);
  root.set("last", last);
  const auto again = round_trip(root);
  const auto tensor = [&](const char* name) {
    return *again.get_if<Dict>()->find(name)->get_if<TensorValue>();
  };
  EXPECT_EQ(tensor("rows").storage, tensor("columns").storage);
  EXPECT_EQ(contiguous_bytes(tensor("columns")), bytes_of_numbers<float>({0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(contiguous_bytes(tensor("last")), bytes_of_numbers<float>({5}));
}

TEST(WriteCheckpoint, a_borrowed_tensor_is_written_from_where_it_lies) {
  const std::vector<float> arena{1, 2, 3, 4};
  const auto tensor = borrow_tensor(DType::float32, {2}, std::as_bytes(std::span(arena).subspan(1, 2)));
  EXPECT_EQ(static_cast<const void*>(tensor.storage->bytes.data()), arena.data() + 1);
  EXPECT_EQ(contiguous_bytes(*round_trip(tensor).get_if<TensorValue>()), bytes_of_numbers<float>({2, 3}));
}

TEST(WriteCheckpoint, the_pickle_is_the_worked_example_of_the_format) {
  Dict root;
  root.set("epoch", 1);
  root.set("w", make_tensor(DType::float32, {2}, bytes_of_numbers<float>({1, 2})));
  using namespace std::string_literals;
  const auto expected =
      "\x80\x02}(X\x05\0\0\0epochK\x01X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage"
      "ctorch\nFloatStorage\nX\x01\0\0\0"
      "0X\x03\0\0\0cpuK\x02tQK\0(K\x02t(K\x01t\x89"
      "ccollections\nOrderedDict\n)RtRu."s;
  EXPECT_EQ(write_pickle(root).bytes, expected);
  EXPECT_EQ(expected.size(), 149U);  // the number in FORMAT.md
}

TEST(WriteCheckpoint, every_entry_begins_at_a_multiple_of_64_bytes) {
  Dict root;
  for (int i = 0; i < 70; ++i) {  // headers of different lengths at different places
    root.set(i, make_tensor(DType::uint8, {i}, std::vector<std::byte>(static_cast<std::size_t>(i))));
  }
  const auto bytes = archive_of(root);
  const MemorySource source(bytes);
  const ZipReader zip(source);
  EXPECT_EQ(zip.entries().size(), 75U);
  for (const auto& [name, entry] : zip.entries()) EXPECT_EQ(entry.data_offset % 64, 0U) << name;
}

TEST(WriteCheckpoint, contracts_are_kept) {
  Value deep = List{};
  for (int i = 0; i < kMaxDepth - 1; ++i) deep = List{{deep}};
  EXPECT_EQ(text_of_value(round_trip(deep)), text_of_value(deep));
  deep = List{{deep}};  // one more than is read again
  EXPECT_THROW(write_pickle(deep), ContractError);
  Value number = 1;
  for (int i = 0; i < kMaxDepth; ++i) number = Tuple{{number}};
  EXPECT_EQ(text_of_value(round_trip(number)), text_of_value(number));
  EXPECT_THROW(make_tensor(DType::float32, {2}, std::vector<std::byte>(7)), ContractError);
  auto floats = make_tensor(DType::float32, {2}, std::vector<std::byte>(8));
  auto integers = floats;
  integers.dtype = DType::int32;
  EXPECT_THROW(write_pickle(List{{floats, integers}}), ContractError);
  EXPECT_THROW(write_pickle(std::string("\xff")), Error);
}

TEST(WriteCheckpointFile, leaves_one_file_whose_bytes_do_not_depend_on_its_name) {
  const TemporaryFolder folder;
  const auto root = make_tensor(DType::float32, {2}, bytes_of_numbers<float>({1, 2}));
  write_checkpoint_file(folder.path() / "epoch_0.pt", root);
  write_checkpoint_file(folder.path() / "another name.pt", root);
  EXPECT_EQ(text_of(folder.path() / "epoch_0.pt"), text_of(folder.path() / "another name.pt"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

// A file-size limit of the process stands for a full disk.
TEST(WriteCheckpointFile, a_failed_write_throws_and_keeps_the_old_file) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "epoch_0.pt";
  write_checkpoint_file(path, "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100000, before.rlim_max};
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto large = make_tensor(DType::uint8, {1000000}, std::vector<std::byte>(1000000));
  const auto message = message_of<Error>([&] { write_checkpoint_file(path, large); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, "cannot write '" + path.string() + "': File too large");
  EXPECT_EQ(*read_checkpoint_file(path).value().get_if<std::string>(), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace ssd
