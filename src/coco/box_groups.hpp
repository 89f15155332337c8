// Boxes put together by image, and within one image by category.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ssd {

struct GroupedBox {
  std::uint32_t category = 0;  // place in the list of categories
  std::uint32_t index = 0;     // in the list of boxes
};

// Built once; const members are thread safe.
class BoxGroups {
 public:
  // Where a box belongs, as places in the lists of images and categories.
  struct Place {
    std::uint32_t image = 0;
    std::uint32_t category = 0;
  };
  static constexpr std::uint32_t kLeftOut = 0xffffffff;  // as image or category: the box is in no group

  BoxGroups(std::span<const Place> places, std::size_t image_count);

  // In the order of the boxes.
  std::span<const GroupedBox> of_image(std::size_t image) const {
    return std::span(boxes_).subspan(starts_[image], starts_[image + 1] - starts_[image]);
  }

 private:
  std::vector<std::size_t> starts_;  // (images + 1)
  std::vector<GroupedBox> boxes_;
};

// Sorts the boxes of one image after another by category; boxes of a category keep their order. Not thread
// safe.
class CategorySorter {
 public:
  explicit CategorySorter(std::size_t category_count) : places_(category_count) {}

  // Valid until the next call.
  std::span<const GroupedBox> sorted(std::span<const GroupedBox> boxes);

 private:
  std::vector<std::uint32_t> places_;   // by category; zeros between calls
  std::vector<std::uint32_t> present_;  // categories
  std::vector<GroupedBox> sorted_;
};

}  // namespace ssd
