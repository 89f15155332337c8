// Names of checkpoint files: "epoch_N.pt", N the zero-based epoch that was finished last, in decimals.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ssd {

std::string checkpoint_file_name(std::int64_t epoch);  // epoch >= 0

// The epoch of a name made by checkpoint_file_name; empty for every other name ("epoch_01.pt",
// "epoch_1.pt.old", ...).
std::optional<std::int64_t> epoch_of_checkpoint_file(std::string_view file_name);

struct CheckpointFile {
  std::int64_t epoch;
  std::filesystem::path path;
};

// The checkpoint files of a folder, by number (epoch_9 before epoch_10). Empty where there is no such folder.
// Throws Error for a folder that cannot be read.
std::vector<CheckpointFile> list_checkpoint_files(const std::filesystem::path& folder);

}  // namespace ssd
