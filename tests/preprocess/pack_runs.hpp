// Runs of ssd_preprocess for tests, and what they leave.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/run_program.hpp"

namespace ssd::test {

inline const std::filesystem::path kData = SSD_TEST_DATA;
inline const std::filesystem::path kBccd = kData / "bccd";
inline const std::filesystem::path kPreprocess = std::filesystem::path(SSD_BIN_DIR) / "ssd_preprocess";

inline std::vector<std::string> operator+(std::vector<std::string> words,
                                          const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline ProgramResult preprocess(const std::vector<std::string>& arguments) {
  return run_program(std::vector{kPreprocess.string()} + arguments);
}

inline ProgramResult preprocess_on_ranks(int ranks, const std::vector<std::string>& arguments) {
  return run_program(
      std::vector<std::string>{SSD_MPIEXEC, "-n", std::to_string(ranks), kPreprocess.string()} + arguments);
}

// The photos of blood cells: 205 in train, 87 in val, about 20 kB each.
inline std::vector<std::string> bccd(const std::string& split, const std::filesystem::path& out,
                                     const std::filesystem::path& images = kBccd / "JPEGImages") {
  return {
      "--split",  split,           "--annotations", (kBccd / ("coco/instances_" + split + ".json")).string(),
      "--images", images.string(), out.string()};
}

// Name and content of all files.
inline std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename().string()] = text_of(entry.path());
  return files;
}

inline std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  const auto start = text.rfind('\n', end);
  return text.substr(start + 1, end - start);
}

}  // namespace ssd::test
