// Complete files of the reference and of torchvision, 47 to 112 MB each. They are kept compressed; the xz
// program (Debian's xz-utils) unpacks them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/golden_files.hpp"
#include "checkpoint/own_section.hpp"
#include "checkpoint/state_dict.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

class CompleteFile {
 public:
  explicit CompleteFile(const std::string& name) : path_(folder_.path() / name) {
    json_ = golden_folder() / (name + ".xz.json");
    const auto command =
        "xz -dc '" + (golden_folder() / (name + ".xz")).string() + "' > '" + path_.string() + "'";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  }

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& json() const { return json_; }
  std::filesystem::path beside(const std::string& name) const { return folder_.path() / name; }

 private:
  TemporaryFolder folder_;
  std::filesystem::path path_, json_;
};

std::string first_name(const CheckpointItem& root) {
  return state_dict_of(root).at(0).name;
}

TEST(CompleteFile, T6_01_the_references_checkpoint_reads_and_is_written_again) {
  const CompleteFile file("epoch_0_resnet18.pt");
  const auto root = read_checkpoint_file(file.path());
  expect_as_json(root.value(), file.json());
  EXPECT_EQ(state_dict_of(root).size(), 174U);
  EXPECT_EQ(root.at("scheduler").at("milestones").dict().kind(), Dict::Kind::counter);
  EXPECT_EQ(root.at("model").dict().kind(), Dict::Kind::ordered);
  EXPECT_EQ(root.at("label_map").at(1).text(), "person");
  EXPECT_FALSE(own_section_of(root));

  const auto copy = file.beside("copy.pt"), copy_of_copy = file.beside("copy_of_copy.pt");
  write_checkpoint_file(copy, root.value());
  const auto again = read_checkpoint_file(copy);
  expect_as_json(again.value(), file.json());
  write_checkpoint_file(copy_of_copy, again.value());
  EXPECT_TRUE(text_of(copy) == text_of(copy_of_copy));  // the bytes depend on the contents alone
}

TEST(CompleteFile, T6_03_the_prefix_of_a_data_parallel_wrapper_is_taken_off) {
  const CompleteFile file("module_prefix_resnet18.pt");
  const auto root = read_checkpoint_file(file.path());
  expect_as_json(root.value(), file.json());
  EXPECT_EQ(first_name(root), "feature_extractor.feature_extractor.0.weight");
}

TEST(CompleteFile, the_old_format_reads) {
  const CompleteFile file("legacy_resnet18.pt");
  const auto root = read_checkpoint_file(file.path());
  expect_as_json(root.value(), file.json());
  EXPECT_EQ(first_name(root), "feature_extractor.feature_extractor.0.weight");
}

TEST(CompleteFile, a_backbone_reads) {
  const CompleteFile file("backbone_resnet18.pth");
  const auto root = read_checkpoint_file(file.path());
  expect_as_json(root.value(), file.json());
  EXPECT_EQ(first_name(root), "conv1.weight");
}

}  // namespace
}  // namespace ssd
