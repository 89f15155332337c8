// The files of tests/data/checkpoint and what their manifest and JSON files say.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "checkpoint/flatten.hpp"
#include "checkpoint/value.hpp"
#include "support/files.hpp"

namespace ssd {

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(SSD_TEST_DATA) / "checkpoint";
}
inline std::filesystem::path small_file(const std::string& name) {
  return golden_folder() / "small" / name;
}

struct ManifestLine {
  std::string file;
  std::string level;
  std::string expectation;
  std::size_t tensors;  // 0 where the manifest does not say
};

inline std::vector<ManifestLine> manifest() {
  std::istringstream stream(text_of(golden_folder() / "manifest.tsv"));
  std::vector<ManifestLine> lines;
  std::string text;
  std::getline(stream, text);  // names of the columns
  while (std::getline(stream, text)) {
    std::istringstream columns(text);
    ManifestLine line;
    std::string tensors;
    std::getline(columns, line.file, '\t');
    std::getline(columns, line.level, '\t');
    std::getline(columns, line.expectation, '\t');
    std::getline(columns, tensors, '\t');
    line.tensors = tensors.empty() ? 0 : std::stoul(tensors);
    lines.push_back(line);
  }
  return lines;
}

// Every tensor and plain value is as the JSON says, and there are no others.
inline void expect_as_json(const Value& root, const std::filesystem::path& json_path) {
  const auto json = nlohmann::json::parse(text_of(json_path));
  const Flattened flat(root);
  ASSERT_EQ(flat.tensors.size(), json.at("tensors").size());
  for (std::size_t i = 0; i < flat.tensors.size(); ++i) {
    auto expected = json.at("tensors")[i];
    expected.erase("sha256");
    EXPECT_EQ(flat.tensors[i].dump(), expected.dump());
  }
  // As texts, so that 0, 0.0 and -0.0 differ.
  EXPECT_EQ(flat.scalars.dump(1), json.at("scalars").dump(1));
}

}  // namespace ssd
