// Runs of ssd_train on a handful of COCO photos (tests/data/coco_free), packed by ssd_preprocess.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/state_dict.hpp"
#include "support/files.hpp"
#include "support/run_program.hpp"

namespace ssd::test {

inline const std::string kProgram = SSD_BIN_DIR "/ssd_train";

// The shards of the photos: 7 to train on, 5 to evaluate; made once for a test program.
inline const std::filesystem::path& packed_photos() {
  static const TemporaryFolder folder;
  static const ProgramResult packed =
      run_program({SSD_BIN_DIR "/ssd_preprocess", SSD_TEST_DATA "/coco_free", folder.path().string()});
  if (packed.exit_code != 0) throw std::runtime_error("cannot pack the photos: " + packed.err);
  return folder.path();
}

inline ProgramResult run_ranks(int ranks, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{SSD_MPIEXEC, "-np", std::to_string(ranks), kProgram};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_program(command);
}

// A short training: ResNet-18, batch 2 per rank, half precision where the processor has it.
inline std::vector<std::string> short_training(const std::filesystem::path& save, int epochs,
                                               std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"--data",
                                     packed_photos().string(),
                                     "--device",
                                     "cpu",
                                     "--backbone",
                                     "resnet18",
                                     "--fp16",
                                     "--batch-size",
                                     "2",
                                     "--epochs",
                                     std::to_string(epochs),
                                     "--seed",
                                     "3",
                                     "--warmup",
                                     "2",
                                     "--evaluation",
                                     "none",
                                     "--save",
                                     save.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

using Tensors = std::vector<std::pair<std::string, std::vector<std::byte>>>;

// Weights, statistics and momentum of a checkpoint.
inline Tensors tensors_of(const std::filesystem::path& path) {
  const auto root = read_checkpoint_file(path);
  Tensors tensors;
  for (const auto& [name, tensor] : state_dict_of(root)) tensors.emplace_back(name, contiguous_bytes(tensor));
  for (const auto& [index, slot] : root.at("optimizer").at("state").dict().entries()) {
    const auto* buffer = slot.get_if<Dict>()->find("momentum_buffer")->get_if<TensorValue>();
    tensors.emplace_back("momentum " + key_text(index), contiguous_bytes(*buffer));
  }
  return tensors;
}

inline void expect_equal(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_GT(a.size(), 200U);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(a[i].second == b[i].second) << a[i].first;
  }
}

inline std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.find(part) != std::string::npos) lines.push_back(line);
  }
  return lines;
}

}  // namespace ssd::test
