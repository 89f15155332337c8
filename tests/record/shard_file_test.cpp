// One shard's file by itself, without a manifest: what its digest covers, and what its contents have to
// fulfil.
#include "record/shard_file.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <functional>

#include "core/error.hpp"
#include "record/hdf5.hpp"
#include "record/made_set.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

const ShardHeader kHeader{Split::val, 1, 3, std::string(32, 'a'), "{}"};

class ShardFile : public testing::Test {
 protected:
  ShardFile() {
    ShardWriter writer(kHeader, made_categories());
    for (const auto& made : made_records(5)) writer.add(made.record, made.jpeg);
    summary = writer.close(path);
    data = read_shard(path).data;
    jpeg_data_bytes = data.jpeg_offsets.back() + data.jpeg_bytes.back();
  }
  std::string read_error() const {
    return message_of<Error>([&] { read_shard(path); });
  }
  std::string digest_refusal() const {
    return fmt::format(
        "shard '{}': damaged: its content does not match its digest; copy it again or run ssd_preprocess "
        "again",
        path.string());
  }
  // What validate() says of the data after the change.
  std::string validate_error(const std::function<void(ShardData&)>& change) const {
    auto changed = data;
    change(changed);
    return message_of<Error>([&] { validate(changed, jpeg_data_bytes); });
  }

  TemporaryFolder temporary;
  fs::path path = temporary.path() / "shard.h5";
  ShardSummary summary;
  ShardData data;
  std::uint64_t jpeg_data_bytes = 0;
};

TEST_F(ShardFile, a_changed_byte_of_any_dataset_is_refused) {
  const auto good = text_of(path);
  int datasets = 0;
  visit_datasets(data, [&](const char* name, const auto& rows) {
    SCOPED_TRACE(name);
    const auto byte_count = std::as_bytes(std::span(rows)).size();
    ASSERT_GT(byte_count, 0U);
    const auto start = hdf5_data_offset(open_hdf5_file(path), name);
    for (const auto at : {start, start + byte_count - 1}) {
      auto text = good;
      text[at] ^= 1;
      write_text(path, text);
      EXPECT_EQ(read_error(), digest_refusal());
    }
    write_text(path, good);
    ++datasets;
  });
  EXPECT_EQ(datasets, 30);
  EXPECT_EQ(read_error(), "(nothing was thrown)");
}

TEST_F(ShardFile, a_changed_attribute_is_refused) {
  const auto good = text_of(path);
  const std::uint32_t two = 2;
  const std::string digits(32, 'b');
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, const void*>>{{"shard_index", &two},
                                                        {"shard_count", &two},
                                                        {"set_identity", digits.data()},
                                                        {"content_digest", digits.data()}}) {
    const auto file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const auto attribute = H5Aopen(file, name, H5P_DEFAULT);
    const auto type = H5Aget_type(attribute);
    ASSERT_TRUE(H5Tget_size(type) == sizeof two || H5Tget_size(type) == digits.size());
    ASSERT_GE(H5Awrite(attribute, type, value), 0);
    H5Tclose(type);
    H5Aclose(attribute);
    H5Fclose(file);
    EXPECT_EQ(read_error(), digest_refusal()) << name;
    write_text(path, good);
  }
}

// Byte for byte as FORMAT.md has it, "Digests".
TEST(ContentDigest, is_of_the_bytes_that_the_format_says) {
  ShardData data;
  std::uint8_t next = 1;
  std::string expected("train\0", 6);
  const auto add_number = [&](std::uint64_t number) {
    for (int i = 0; i < 8; ++i) expected.push_back(static_cast<char>(number >> 8 * i & 255));
  };
  add_number(258);
  add_number(772);
  expected += std::string(32, '5');
  visit_datasets(data, [&](const char* name, auto& rows) {
    rows.resize(next % 3U);  // some are empty
    const auto bytes = std::as_writable_bytes(std::span(rows));
    expected += std::string(name) + '\0';
    add_number(bytes.size());
    for (auto& byte : bytes) {
      byte = static_cast<std::byte>(next++);
      expected.push_back(static_cast<char>(byte));
    }
    ++next;
  });
  const auto digest = content_digest({Split::train, 258, 772, std::string(32, '5'), "{}"}, data);
  EXPECT_EQ(digest, digest_of(std::as_bytes(std::span(expected))));
  EXPECT_EQ(digest.hex(), "a702fcd117ff0bc4ae3489cd6ebc0fb8");
}

TEST_F(ShardFile, a_picture_may_end_with_the_data_and_no_byte_later) {
  EXPECT_NO_THROW(validate(data, jpeg_data_bytes));
  const auto last = fmt::format("image {}: its picture lies outside the data", data.image_ids.back());
  EXPECT_EQ(message_of<Error>([&] { validate(data, jpeg_data_bytes - 1); }), last);
  EXPECT_EQ(validate_error([](ShardData& d) { ++d.jpeg_bytes.back(); }), last);
  EXPECT_EQ(validate_error([](ShardData& d) { ++d.jpeg_offsets.back(); }), last);
  EXPECT_EQ(validate_error([](ShardData& d) { d.jpeg_offsets.back() = ~std::uint64_t{0} - 5; }), last);
  // One without a picture.
  const auto at = [&](std::uint64_t offset) {
    return validate_error([&](ShardData& d) {
      d.image_flags.back() |= kImageBad;
      d.jpeg_bytes.back() = 0;
      d.jpeg_offsets.back() = offset;
      d.restart_offsets.resize(d.first_restarts[4]);
      d.first_restarts.back() = d.first_restarts[4];
      d.restart_intervals.back() = 0;
    });
  };
  EXPECT_EQ(at(jpeg_data_bytes), "(nothing was thrown)");
  EXPECT_EQ(at(jpeg_data_bytes + 1), last);
}

TEST_F(ShardFile, a_picture_is_there_unless_it_is_bad_and_has_a_size_and_an_orientation) {
  const auto id = data.image_ids[1];
  EXPECT_EQ(validate_error([](ShardData& d) { d.image_flags[1] |= kImageBad; }),
            fmt::format("image {}: no picture", id));
  EXPECT_EQ(validate_error([](ShardData& d) { d.jpeg_bytes[1] = 0; }),
            fmt::format("image {}: no picture", id));
  for (const std::int32_t size : {0, -1}) {
    EXPECT_EQ(validate_error([&](ShardData& d) { d.widths[1] = size; }),
              fmt::format("image {}: a size of {} x {}", id, size, data.heights[1]));
    EXPECT_EQ(validate_error([&](ShardData& d) { d.heights[1] = size; }),
              fmt::format("image {}: a size of {} x {}", id, data.widths[1], size));
  }
  EXPECT_EQ(validate_error([](ShardData& d) { d.widths[1] = d.heights[1] = 1; }), "(nothing was thrown)");
  for (const auto orientation : {std::uint8_t{0}, std::uint8_t{9}})
    EXPECT_EQ(validate_error([&](ShardData& d) { d.orientations[1] = orientation; }),
              fmt::format("image {}: orientation {}", id, orientation));
  for (const auto orientation : {std::uint8_t{1}, std::uint8_t{8}})
    EXPECT_EQ(validate_error([&](ShardData& d) { d.orientations[1] = orientation; }), "(nothing was thrown)");
}

TEST_F(ShardFile, a_dataset_with_a_row_more_or_less_is_refused) {
  visit_datasets(data, [&](std::string_view name, const auto&) {
    for (const bool is_longer : {true, false}) {
      auto changed = data;
      visit_datasets(changed, [&](std::string_view other, auto& rows) {
        if (other == name) rows.resize(is_longer ? rows.size() + 1 : rows.size() - 1);
      });
      EXPECT_THROW(validate(changed, jpeg_data_bytes), Error) << name << is_longer;
    }
  });
}

TEST_F(ShardFile, offsets_run_from_nought_to_the_end_and_never_back) {
  for (const std::string name : {"categories/name_offset", "images/file_name_offset",
                                 "images/first_annotation", "images/first_restart"}) {
    const auto with = [&](std::size_t from_end, std::int64_t change) {
      return validate_error([&](ShardData& d) {
        visit_datasets(d, [&](std::string_view other, auto& rows) {
          if constexpr (std::is_same_v<std::decay_t<decltype(rows)>, std::vector<std::uint64_t>>) {
            if (other != name) return;
            auto& row = rows[from_end == 0 ? rows.size() - 1 : from_end == 1 ? 1 : 0];
            row += static_cast<std::uint64_t>(change);
          }
        });
      });
    };
    const auto refusal = fmt::format("dataset '{}' does not fit the others", name);
    EXPECT_EQ(with(0, 1), refusal);
    EXPECT_EQ(with(0, -1), refusal);
    EXPECT_EQ(with(2, 1), refusal);
    EXPECT_EQ(with(1, 1000), refusal);  // beyond its neighbour
  }
}

}  // namespace
}  // namespace ssd
