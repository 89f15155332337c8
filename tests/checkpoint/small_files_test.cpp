// Every small file of the manifest: read as its JSON says, or refused in one line, with little memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/golden_files.hpp"
#include "checkpoint/state_dict.hpp"
#include "core/error.hpp"
#include "support/count_allocations.hpp"

namespace ssd {
namespace {

bool is_small(const ManifestLine& line) {
  return line.file.starts_with("small/");
}

struct Outcome {
  std::optional<Value> root;
  std::string error;
};

Outcome read(const std::filesystem::path& path) {
  try {
    return {read_checkpoint_file(path).value(), {}};
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
}

// A file that the manifest calls good for the archive and the pickle, whatever a model thinks of it.
bool must_read(const ManifestLine& line) {
  return line.expectation == "reads" || line.level == "model";
}

TEST(ReadCheckpointFile, T6_04_reads_every_good_file_as_its_json_says) {
  int files = 0;
  for (const auto& line : manifest()) {
    if (!is_small(line) || !must_read(line)) continue;
    SCOPED_TRACE(line.file);
    const auto path = golden_folder() / line.file;
    const auto outcome = read(path);
    ASSERT_TRUE(outcome.root) << outcome.error;
    expect_as_json(*outcome.root, path.string() + ".json");
    ++files;
  }
  EXPECT_EQ(files, 32);
}

TEST(ReadCheckpointFile, refuses_every_bad_file_in_one_line_that_names_it) {
  int files = 0;
  for (const auto& line : manifest()) {
    if (!is_small(line) || must_read(line) || line.expectation != "refuses") continue;
    const auto path = golden_folder() / line.file;
    const auto outcome = read(path);
    EXPECT_FALSE(outcome.root) << line.file;
    EXPECT_THAT(outcome.error, testing::StartsWith("checkpoint '" + path.string() + "': "));
    EXPECT_EQ(outcome.error.find_first_of("\n\r"), std::string::npos) << outcome.error;
    ++files;
  }
  EXPECT_EQ(files, 74);
}

TEST(ReadCheckpointFile, gives_no_wrong_values_for_odd_files) {
  int files = 0;
  for (const auto& line : manifest()) {
    if (!is_small(line) || line.expectation != "either") continue;
    SCOPED_TRACE(line.file);
    const auto path = golden_folder() / line.file;
    const auto outcome = read(path);
    const std::string json = path.string() + ".json";
    if (outcome.root && std::filesystem::exists(json)) expect_as_json(*outcome.root, json);
    ++files;
  }
  EXPECT_EQ(files, 32);
}

TEST(ReadCheckpointFile, allocates_a_small_multiple_of_the_file) {
  for (const auto& line : manifest()) {
    if (!is_small(line)) continue;
    const auto path = golden_folder() / line.file;
    reset_bytes_allocated();
    const auto outcome = read(path);
    EXPECT_LE(bytes_allocated(), std::filesystem::file_size(path) * 200 + (std::size_t{1} << 20))
        << line.file;
  }
}

std::string error_of(const char* name) {
  return read(small_file(name)).error;
}

TEST(ReadCheckpointFile, says_what_was_met) {
  using testing::HasSubstr;
  EXPECT_THAT(error_of("evil_os_system.pt"), HasSubstr("it refers to posix.system, which is not read here"));
  EXPECT_THAT(error_of("evil_torch_load_name.pt"), HasSubstr("torch.hub.load"));
  EXPECT_THAT(error_of("tiny_numpy_scalar.pt"), HasSubstr("numpy"));
  EXPECT_THAT(error_of("tiny_complex.pt"), HasSubstr("torch.ComplexFloatStorage"));
  EXPECT_THAT(error_of("tiny_sparse.pt"), HasSubstr("_rebuild_sparse_tensor"));
  EXPECT_THAT(error_of("tiny_protocol_4.pt"), HasSubstr("pickle protocol 4"));
  EXPECT_THAT(error_of("tiny_legacy_protocol_4.pt"), HasSubstr("pickle protocol 4"));
  EXPECT_THAT(error_of("tiny_deflated.pt"), HasSubstr("is compressed (method 8)"));
  EXPECT_THAT(error_of("tiny_big_endian.pt"), HasSubstr("byte order is 'big'"));
  EXPECT_THAT(error_of("broken_unknown_opcode.pt"), HasSubstr("pickle opcode 0xff at byte 140"));
  EXPECT_THAT(error_of("crc_data.pt"), HasSubstr("zip entry 'archive/data/0' is damaged: CRC-32 "));
  EXPECT_THAT(error_of("truncated_zip_half.pt"), HasSubstr("cut short or damaged"));
  EXPECT_THAT(error_of("broken_missing_record.pt"),
              HasSubstr("'archive/data/7', a tensor's data, is missing"));
  EXPECT_THAT(error_of("evil_path_key.pt"), HasSubstr("'archive/data/../"));
  EXPECT_THAT(error_of("torchscript.pt"), HasSubstr("a TorchScript archive"));
  EXPECT_THAT(error_of("safetensors.pt"), HasSubstr("a safetensors file"));
  EXPECT_THAT(error_of("hdf5.pt"), HasSubstr("an HDF5 file"));
  EXPECT_THAT(error_of("tar.pt"), HasSubstr("a tar file"));
  EXPECT_THAT(error_of("html.pt"), HasSubstr("an HTML page"));
  EXPECT_THAT(error_of("git_lfs_pointer.pt"), HasSubstr("a Git LFS pointer"));
  EXPECT_THAT(error_of("empty.pt"), HasSubstr("it is an empty file"));
}

TEST(ContiguousBytes, refuses_terabytes_made_of_one_element) {
  const auto tensors = state_dict_of(read_checkpoint_file(small_file("broken_stride0_huge.pt")));
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_THROW(contiguous_bytes(tensors[0].tensor), Error);
}

}  // namespace
}  // namespace ssd
