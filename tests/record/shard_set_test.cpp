#include "record/shard_set.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <type_traits>

#include "core/error.hpp"
#include "record/hdf5.hpp"
#include "record/made_set.hpp"
#include "record/shard_file.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class ShardSetTest : public testing::Test {
 protected:
  std::string open_error(Split split = Split::train) const {
    return message_of<Error>([&] { ShardSet::open(path, split); });
  }
  fs::path shard(int index) const { return path / fmt::format("train-0000{}-of-00002.h5", index); }

  TemporaryFolder temporary;
  fs::path path = temporary.path() / "set";
};

TEST_F(ShardSetTest, every_field_survives_the_round_trip) {
  const auto records = made_records(23);
  write_made_set(path, records, {.shard_count = 4});
  const auto set = ShardSet::open(path, Split::train);
  EXPECT_EQ(set.split(), Split::train);
  EXPECT_EQ(set.folder(), path);
  ASSERT_EQ(set.categories().size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(set.categories()[i].id, made_categories()[i].id);
    EXPECT_EQ(set.categories()[i].name, made_categories()[i].name);
  }
  ASSERT_EQ(set.records().size(), 23U);
  for (std::size_t i = 0; i < 23; ++i) expect_equal(set, set.records()[i], records[i]);
}

TEST_F(ShardSetTest, what_the_reader_keeps_to_itself_is_in_the_file_too) {
  const auto records = made_records(5);
  write_made_set(path, records, {.shard_count = 1});
  const auto data = read_shard(path / "train-00000-of-00001.h5").data;
  for (std::size_t i = 0; i < 5; ++i) {
    const auto& expected = records[i].record;
    EXPECT_EQ(data.image_json_orders[i], expected.json_order);
    EXPECT_EQ(data.stored_widths[i], expected.stored_width);
    EXPECT_EQ(data.stored_heights[i], expected.stored_height);
    EXPECT_EQ(data.source_orientations[i], expected.source_orientation);
    EXPECT_EQ(data.image_flags[i], expected.flags);
    EXPECT_EQ(data.source_bytes[i], expected.source_bytes);
    EXPECT_EQ(data.source_digests[i], (std::array{expected.source_digest.high, expected.source_digest.low}));
  }
}

TEST_F(ShardSetTest, bad_records_and_shards_without_records_are_read_back) {
  auto records = made_records(1);
  records[0].record.flags = kImageBad;
  records[0].jpeg.clear();
  write_made_set(path, records, {.split = Split::val, .shard_count = 2});
  const auto set = ShardSet::open(path, Split::val);
  ASSERT_EQ(set.records().size(), 1U);
  EXPECT_TRUE(set.records()[0].is_bad);
  EXPECT_EQ(set.records()[0].byte_count, 0U);
}

TEST_F(ShardSetTest, T4_03_threads_read_every_record_at_once) {
  const auto records = made_records(200);
  write_made_set(path, records);
  const auto set = ShardSet::open(path, Split::train);
  std::vector<std::size_t> wrong(4);
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<std::byte> buffer;
      for (std::size_t k = 0; k < 1000; ++k) {
        const auto i = (k * 37 + t * 51) % 200;
        wrong[t] += !std::ranges::equal(set.read_jpeg(set.records()[i], buffer), records[i].jpeg);
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, std::vector<std::size_t>(4));
}

TEST_F(ShardSetTest, equal_input_gives_equal_bytes_at_another_time) {
  const auto records = made_records(9);
  write_made_set(path, records);
  ::usleep(1'100'000);  // HDF5's times count seconds
  write_made_set(temporary.path() / "again", records);
  for (const auto* name : {"train-00000-of-00002.h5", "train-00001-of-00002.h5", "train.manifest.json"})
    EXPECT_EQ(text_of(path / name), text_of(temporary.path() / "again" / name)) << name;
}

TEST_F(ShardSetTest, T4_04_T4_06_files_are_small_old_enough_in_form_and_aligned) {
  auto records = made_records(2);
  records[0].jpeg.resize(1'000'000);
  records[1].jpeg.resize(1'000'000);
  write_made_set(path, records);
  const auto bytes = text_of(shard(0));
  EXPECT_EQ(bytes.substr(1, 3), "HDF");
  EXPECT_LE(bytes[8], 2);  // superblock version
  EXPECT_LT(bytes.size(), 1'030'000U);
  EXPECT_EQ(ShardSet::open(path, Split::train).records()[0].byte_offset % 4096, 0U);
}

TEST_F(ShardSetTest, identity_follows_the_content) {
  auto records = made_records(5);
  write_made_set(path, records);
  write_made_set(temporary.path() / "same", records);
  records[3].record.annotations.at(0).annotation.bbox_xywh[2] += 1e-13;
  write_made_set(temporary.path() / "other", records);
  const auto digest = ShardSet::open(path, Split::train).digest();
  EXPECT_EQ(ShardSet::open(temporary.path() / "same", Split::train).digest(), digest);
  EXPECT_NE(ShardSet::open(temporary.path() / "other", Split::train).digest(), digest);
}

// Whether the set opens and gives these records; false where it is refused.
bool is_accepted(const fs::path& path, const std::vector<MadeRecord>& records) {
  try {
    const auto set = ShardSet::open(path, Split::train);
    EXPECT_EQ(set.records().size(), records.size());
    for (std::size_t i = 0; i < records.size(); ++i) expect_equal(set, set.records()[i], records[i]);
    return true;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("train-00000-of-00001.h5"));
    return false;
  }
}

TEST_F(ShardSetTest, a_flipped_byte_is_refused_or_changes_nothing) {
  const auto records = made_records(4);
  write_made_set(path, records, {.shard_count = 1});
  const auto file = path / "train-00000-of-00001.h5";
  auto bytes = text_of(file);
  const std::size_t step = std::getenv("SSD_TEST_LONG") != nullptr ? 1 : 37;
  std::size_t refused = 0;
  std::size_t tried = 0;
  for (std::size_t i = 0; i < bytes.size(); i += step, ++tried) {
    SCOPED_TRACE(i);
    bytes[i] = static_cast<char>(~bytes[i]);
    write_text(file, bytes);
    refused += !is_accepted(path, records);
    bytes[i] = static_cast<char>(~bytes[i]);
    if (HasFailure()) break;
  }
  // The rest is padding between the parts of the file.
  EXPECT_GT(refused, tried / 3);
  write_text(file, bytes);
  EXPECT_TRUE(is_accepted(path, records));
}

TEST_F(ShardSetTest, a_damaged_picture_is_named) {
  const auto records = made_records(4);
  write_made_set(path, records);
  const auto offset = ShardSet::open(path, Split::train).records()[2].byte_offset;
  auto bytes = text_of(shard(1));
  bytes[offset + 5] = static_cast<char>(bytes[offset + 5] ^ 1);
  write_text(shard(1), bytes);
  const auto set = ShardSet::open(path, Split::train);
  std::vector<std::byte> jpeg;
  set.read_jpeg(set.records()[3], jpeg);
  EXPECT_EQ(
      message_of<Error>([&] { set.read_jpeg(set.records()[2], jpeg); }),
      fmt::format(
          "shard '{}': the picture of image {} ('folder/2.jpg') at byte {} is damaged (CRC-32); copy the "
          "shard again or run ssd_preprocess again",
          shard(1).string(), records[2].record.image.id.value(), offset));
}

TEST_F(ShardSetTest, an_index_that_changes_while_in_use_is_named) {
  write_made_set(path, made_records(4));
  const auto set = ShardSet::open(path, Split::train);
  const auto& record = set.records()[2];
  ASSERT_EQ(record.restart_count, 3U);
  auto text = text_of(shard(1));
  text[record.restart_byte_offset + 5] ^= 1;  // 27 becomes 283
  write_text(shard(1), text);
  std::vector<std::uint32_t> restarts;
  EXPECT_EQ(
      message_of<Error>([&] { set.read_restarts(record, restarts); }),
      fmt::format("shard '{}': the restart segments of image {} ('folder/2.jpg') are damaged; copy the shard "
                  "again or run ssd_preprocess again",
                  shard(1).string(), record.image_id.value()));
}

TEST_F(ShardSetTest, segments_that_do_not_fit_their_picture_are_not_written) {
  auto made = made_records(2)[1];
  const auto write = [&](std::uint32_t interval, std::vector<std::uint32_t> offsets) {
    made.record.restart_interval = interval;
    made.record.restart_offsets = std::move(offsets);
    ShardWriter writer({Split::train, 0, 1, std::string(32, 'a'), "{}"}, made_categories());
    writer.add(made.record, made.jpeg);
    return message_of<Error>([&] { writer.close(temporary.path() / "shard.h5"); });
  };
  const auto refusal =
      fmt::format("image {}: its restart segments do not fit its picture", made.record.image.id.value());
  const auto size = static_cast<std::uint32_t>(made.jpeg.size());
  EXPECT_EQ(write(5, {20, 27}), "(nothing was thrown)");
  EXPECT_EQ(write(5, {}), refusal);
  EXPECT_EQ(write(0, {20}), refusal);
  EXPECT_EQ(write(5, {20, 20}), refusal);
  EXPECT_EQ(write(5, {27, 20}), refusal);
  EXPECT_EQ(write(5, {20, size}), refusal);
  EXPECT_EQ(write(5, {20, size - 1}), "(nothing was thrown)");
}

TEST_F(ShardSetTest, a_shard_cut_off_while_in_use_is_named) {
  write_made_set(path, made_records(4));
  const auto set = ShardSet::open(path, Split::train);
  fs::resize_file(shard(0), 100);
  std::vector<std::byte> jpeg;
  EXPECT_THAT(message_of<Error>([&] { set.read_jpeg(set.records()[0], jpeg); }),
              StartsWith(fmt::format("shard '{}': cut off at byte ", shard(0).string())));
}

TEST_F(ShardSetTest, missing_cut_off_swapped_and_mixed_shards_are_refused_with_the_reason) {
  const auto records = made_records(8);
  write_made_set(path, records);
  const auto first = text_of(shard(0));
  const auto second = text_of(shard(1));

  fs::remove(shard(1));
  EXPECT_EQ(open_error(),
            fmt::format("shard '{}': missing; copy it again or run ssd_preprocess again", shard(1).string()));

  write_text(shard(1), second.substr(0, second.size() - 1));
  EXPECT_EQ(
      open_error(),
      fmt::format(
          "shard '{}': {} bytes, the manifest says {}: cut off; copy it again or run ssd_preprocess again",
          shard(1).string(), second.size() - 1, second.size()));

  write_text(shard(1), second + "x");
  EXPECT_EQ(open_error(),
            fmt::format("shard '{}': {} bytes, the manifest says {}: not the file of this set; copy it "
                        "again or run ssd_preprocess again",
                        shard(1).string(), second.size() + 1, second.size()));

  write_text(shard(1), second);
  EXPECT_EQ(open_error(), "(nothing was thrown)");

  const auto other = temporary.path() / "other";
  write_made_set(other, records, {.identity = std::string(32, 'b')});
  fs::copy_file(other / shard(1).filename(), shard(1), fs::copy_options::overwrite_existing);
  EXPECT_EQ(open_error(),
            fmt::format("shard '{}': belongs to another set ({}, the manifest says {}); do not mix the "
                        "files of two runs",
                        shard(1).string(), std::string(32, 'b'), std::string(32, 'a')));
}

TEST_F(ShardSetTest, swapped_shards_of_one_size_are_refused) {
  auto records = made_records(2);
  records[1] = records[0];
  write_made_set(path, records);
  ASSERT_EQ(fs::file_size(shard(0)), fs::file_size(shard(1)));
  fs::copy_file(shard(0), shard(1), fs::copy_options::overwrite_existing);
  EXPECT_EQ(open_error(),
            fmt::format("shard '{}': is train shard 0 of 2 under a wrong name", shard(1).string()));
}

TEST_F(ShardSetTest, shards_of_another_split_or_number_under_a_right_name_are_refused) {
  const auto records = made_records(4);
  write_made_set(path, records);
  const auto put_in_place = [&](const MadeSetOptions& options, const std::string& name) {
    const auto other = temporary.path() / name;
    write_made_set(other, records, options);
    // Two shards of equally many records, of the same length.
    fs::copy_file(other / name, shard(0), fs::copy_options::overwrite_existing);
    auto manifest = text_of(path / "train.manifest.json");
    const auto at = manifest.find("\"file_bytes\": ") + 14;
    manifest.replace(at, manifest.find(',', at) - at, std::to_string(fs::file_size(shard(0))));
    write_text(path / "train.manifest.json", manifest);
    return open_error();
  };
  EXPECT_EQ(put_in_place({.split = Split::val}, "val-00000-of-00002.h5"),
            fmt::format("shard '{}': is val shard 0 of 2 under a wrong name", shard(0).string()));
  EXPECT_EQ(put_in_place({.shard_count = 1}, "train-00000-of-00001.h5"),
            fmt::format("shard '{}': is train shard 0 of 1 under a wrong name", shard(0).string()));
}

TEST_F(ShardSetTest, counts_in_the_manifest_that_are_not_the_shards_are_refused) {
  write_made_set(path, made_records(4));  // 0, 1, 2 and 3 boxes
  const auto file = path / "train.manifest.json";
  const auto text = text_of(file);
  for (const auto& [from, to, said] :
       {std::array{"\"image_count\": 2", "\"image_count\": 3", "3 and 1"},
        std::array{"\"annotation_count\": 1", "\"annotation_count\": 0", "2 and 0"}}) {
    auto changed = text;
    changed.replace(changed.find(from), std::string_view(from).size(), to);
    write_text(file, changed);
    EXPECT_EQ(open_error(), fmt::format("shard '{}': 2 images and 1 annotations, the manifest says {}; copy "
                                        "both again or run ssd_preprocess again",
                                        shard(0).string(), said));
  }
}

TEST_F(ShardSetTest, a_shard_of_another_content_but_the_same_identity_is_refused) {
  auto records = made_records(2);
  write_made_set(path, records);
  records[1].record.source_bytes += 1;
  write_made_set(temporary.path() / "other", records);
  fs::copy_file(temporary.path() / "other" / shard(1).filename(), shard(1),
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(
      open_error(),
      fmt::format(
          "shard '{}': its content is not what the manifest says; copy both again or run ssd_preprocess "
          "again",
          shard(1).string()));
}

TEST_F(ShardSetTest, another_format_version_is_refused) {
  write_made_set(path, made_records(2));
  const auto file = H5Fopen(shard(0).c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const auto attribute = H5Aopen(file, "format_version", H5P_DEFAULT);
  const std::uint32_t version = 2;
  ASSERT_GE(H5Awrite(attribute, H5T_NATIVE_UINT32, &version), 0);
  H5Aclose(attribute);
  H5Fclose(file);
  EXPECT_EQ(open_error(),
            fmt::format("shard '{}': format version 2 (this build reads 1); run ssd_preprocess again",
                        shard(0).string()));
}

TEST_F(ShardSetTest, a_file_that_is_not_hdf5_is_refused) {
  write_made_set(path, made_records(2));
  write_text(shard(0), std::string(fs::file_size(shard(0)), 'x'));
  EXPECT_THAT(open_error(),
              StartsWith(fmt::format("shard '{}': cannot be read; copy it again or run ssd_preprocess "
                                     "again (HDF5: H5Fopen failed: ",
                                     shard(0).string())));
}

TEST_F(ShardSetTest, damaged_manifests_are_refused) {
  write_made_set(path, made_records(2));
  const auto file = path / "train.manifest.json";
  const auto text = text_of(file);
  const auto with = [&](const std::string& from, const std::string& to) {
    auto changed = text;
    changed.replace(changed.find(from), from.size(), to);
    write_text(file, changed);
    return open_error();
  };
  write_text(file, text.substr(0, text.size() / 2));
  EXPECT_THAT(open_error(), StartsWith(fmt::format("manifest '{}': damaged (", file.string())));
  EXPECT_EQ(with("\"ssd-shards\"", "\"other\""),
            fmt::format("manifest '{}': is not a manifest of shards", file.string()));
  EXPECT_EQ(with("\"format_version\": 1", "\"format_version\": 3"),
            fmt::format("manifest '{}': format version 3 (this build reads 1); run ssd_preprocess again",
                        file.string()));
  EXPECT_THAT(with("aaaa", "aaab"), HasSubstr("damaged: its content does not match its digest"));
  EXPECT_THAT(with("\"file_bytes\"", "\"file_byte\""), HasSubstr("damaged ("));
  EXPECT_THAT(with("train-00001", "../train-1"), HasSubstr("not the name of train shard 1 of 2"));
}

TEST_F(ShardSetTest, other_folders_are_answered_with_what_to_do) {
  const auto folder = path.string();
  EXPECT_EQ(open_error(),
            fmt::format("no folder '{}'; give the folder that ssd_preprocess wrote, with --data or SSD_DATA",
                        folder));
  write_text(path, "x");
  EXPECT_EQ(open_error(),
            fmt::format("'{}' is not a folder; give the folder that ssd_preprocess wrote", folder));
  fs::remove(path);
  fs::create_directories(path);
  EXPECT_EQ(open_error(), fmt::format("'{0}': no train shards (no 'train.manifest.json'); write them with "
                                      "ssd_preprocess COCO {0}",
                                      folder));
  fs::create_directories(path / "annotations");
  EXPECT_EQ(open_error(),
            fmt::format("'{0}' is a COCO folder, not a set of shards; pack it once: ssd_preprocess {0} "
                        "{0}-shards",
                        folder));
  fs::remove(path / "annotations");
  write_made_set(path, made_records(2));
  EXPECT_THAT(open_error(Split::val), HasSubstr("no val shards"));
  fs::remove(path / "train.manifest.json");
  EXPECT_EQ(open_error(),
            fmt::format("'{}': the train shards are not complete (no 'train.manifest.json'): the run that "
                        "wrote them did not finish; run ssd_preprocess again",
                        folder));
}

TEST_F(ShardSetTest, T4_01_a_lock_of_another_process_does_not_matter) {
  write_made_set(path, made_records(2));
  const int descriptor = ::open(shard(0).c_str(), O_RDWR);
  ASSERT_EQ(::flock(descriptor, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(open_error(), "(nothing was thrown)");
  ::close(descriptor);
}

TEST_F(ShardSetTest, moves_with_its_open_files) {
  const auto records = made_records(4);
  write_made_set(path, records);
  auto set = ShardSet::open(path, Split::train);
  const ShardSet moved(std::move(set));
  set = ShardSet::open(path, Split::train);
  std::vector<std::byte> buffer;
  EXPECT_TRUE(std::ranges::equal(moved.read_jpeg(moved.records()[1], buffer), records[1].jpeg));
  EXPECT_TRUE(std::ranges::equal(set.read_jpeg(set.records()[3], buffer), records[3].jpeg));
}

TEST_F(ShardSetTest, opening_leaves_one_descriptor_a_shard_and_a_refusal_none) {
  write_made_set(path, made_records(4));
  const auto open_descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = open_descriptors();
  {
    const auto set = ShardSet::open(path, Split::train);
    EXPECT_EQ(open_descriptors(), before + 2);
  }
  fs::resize_file(shard(1), 10);
  open_error();
  EXPECT_EQ(open_descriptors(), before);
}

// A file-size limit stands for a full disk: write fails in the middle of the file.
// Pictures of one size and other content, more of them than 32 bits count where SSD_TEST_LONG is set.
TEST_F(ShardSetTest, T4_08_a_shard_larger_than_any_single_write_is_read_back) {
  const std::size_t picture_bytes = std::size_t{100} << 20;
  const std::size_t count = std::getenv("SSD_TEST_LONG") != nullptr ? 43 : 1;  // 4.2 GiB
  auto made = made_records(1)[0];
  made.jpeg.resize(picture_bytes);
  {
    SetFolder folder(path, Split::train);
    Manifest manifest{Split::train, std::string(32, 'a'), {}, {}};
    ShardWriter writer({Split::train, 0, 1, manifest.set_identity, "{}"}, made_categories(),
                       count * picture_bytes);
    for (std::size_t i = 0; i < count; ++i) {
      std::fill(made.jpeg.begin(), made.jpeg.end(), static_cast<std::byte>(i + 1));
      writer.add(made.record, made.jpeg);
    }
    manifest.shards.push_back(writer.close(folder.temporary_path(0, 1)));
    manifest.set_digest = set_digest_of(manifest).hex();
    folder.publish(manifest.shards, manifest_text(manifest, nlohmann::ordered_json::object()));
  }
  const auto set = ShardSet::open(path, Split::train);
  ASSERT_EQ(set.records().size(), count);
  std::vector<std::byte> buffer;
  for (std::size_t i = 0; i < count; ++i) {
    const auto jpeg = set.read_jpeg(set.records()[i], buffer);
    EXPECT_EQ(jpeg.size(), picture_bytes);
    EXPECT_TRUE(std::all_of(jpeg.begin(), jpeg.end(), [&](auto b) {
      return b == static_cast<std::byte>(i + 1);
    })) << i;
  }
}

TEST_F(ShardSetTest, T4_09_a_write_that_fails_is_an_error_with_the_systems_reason) {
  const auto child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{50'000, 50'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto records = made_records(2);
    records[0].jpeg.resize(100'000);
    const auto message = message_of<Error>([&] { write_made_set(path, records); });
    const bool is_good = message.starts_with("cannot write shard '") &&
                         message.ends_with("H5Dwrite failed: File too large") && fs::is_empty(path);
    if (!is_good) std::fprintf(stderr, "%s\n", message.c_str());
    // exit, not _exit: the library's own end must not fall over the file either.
    std::exit(is_good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Hdf5, handles_are_movable_and_not_copyable) {
  static_assert(std::is_nothrow_move_constructible_v<Hdf5File> &&
                std::is_nothrow_move_assignable_v<Hdf5File>);
  static_assert(!std::is_copy_constructible_v<Hdf5File> && !std::is_copy_assignable_v<Hdf5Dataset>);
}

TEST(Hdf5, an_error_carries_library_call_and_the_systems_reason) {
  try {
    open_hdf5_file("/nowhere/x.h5");
    FAIL();
  } catch (const LibraryError& error) {
    EXPECT_EQ(error.library(), "HDF5");
    EXPECT_EQ(error.call(), "H5Fopen");
    EXPECT_THAT(error.what(), HasSubstr("No such file or directory"));
  }
}

}  // namespace
}  // namespace ssd
