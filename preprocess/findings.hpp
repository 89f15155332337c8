// What was found wrong, grouped by kind: every one is counted, the first of each kind are listed. Not thread
// safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ssd {

class Findings {
 public:
  static constexpr std::size_t kListed = 10;  // of each kind

  void add(std::string_view kind, std::string text);
  std::size_t count() const { return count_; }
  // "train: 12 images that are cut off:" and the lines of the first ten, kinds in order of appearance.
  std::vector<std::string> lines(std::string_view prefix) const;

 private:
  struct Group {
    std::string kind;
    std::size_t count = 0;
    std::vector<std::string> texts;
  };
  std::vector<Group> groups_;
  std::size_t count_ = 0;
};

}  // namespace ssd
