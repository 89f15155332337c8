// Golden decode: tests/data/golden/README.txt, section 8.
#include "model/detection_decode.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/golden_numbers.hpp"
#include "support/h5_golden.hpp"

namespace ssd {
namespace {

using test::field;
using test::GoldenFile;

struct DecodeCase {
  torch::Tensor locations, confidences;
};

DecodeCase load_case(const GoldenFile& file, int k, const std::string& group) {
  const auto images = file.attribute<std::int64_t>(group, "images");
  const auto tag = fmt::format("{}_{}", k, file.attribute<std::int64_t>(group, "salt"));
  DecodeCase out;
  if (file.text_attribute(group, "base") == "zero") {
    out = {torch::zeros({images, 4, kDefaultBoxCount}), torch::zeros({images, 81, kDefaultBoxCount})};
  } else {
    out = {field({images, 4, kDefaultBoxCount}, "decode_ploc_" + tag,
                 file.attribute<double>(group, "ploc_scale")),
           field({images, 81, kDefaultBoxCount}, "decode_plabel_" + tag,
                 file.attribute<double>(group, "logit_scale"))};
  }
  const auto active_rows = file.read<std::int32_t>(group + "/active");
  const auto boost = file.read<std::int32_t>(group + "/boost");
  const auto bonus = static_cast<float>(file.attribute<double>(group, "bonus"));
  for (std::int64_t n = 0; n < images; ++n) {
    const auto salt = test::salt_of(fmt::format("decode_active_{}_{}", tag, n));
    std::vector<bool> active(kDefaultBoxCount);
    for (std::size_t row = 0; row + 3 < active_rows.size(); row += 4) {
      for (auto i = active_rows[row + 2]; i < active_rows[row + 3]; ++i) {
        const auto draw = test::hash_of(static_cast<std::uint32_t>(i), salt) >> 16;
        if (active_rows[row] == 0 || static_cast<std::int32_t>(draw) < active_rows[row + 1])
          active[static_cast<std::size_t>(i)] = true;
      }
    }
    auto logits = out.confidences.accessor<float, 3>();
    for (std::int64_t i = 0; i < kDefaultBoxCount; ++i) {
      if (!active[static_cast<std::size_t>(i)]) {
        logits[n][0][i] += 64;
      } else {
        for (const auto c : boost) logits[n][c][i] += bonus;
      }
    }
  }
  const auto overrides = file.read<double>(group + "/overrides");
  for (std::size_t row = 0; row + 4 < overrides.size(); row += 5) {
    auto& target = overrides[row + 1] == 0 ? out.locations : out.confidences;
    target[static_cast<std::int64_t>(overrides[row])][static_cast<std::int64_t>(overrides[row + 2])]
          [static_cast<std::int64_t>(overrides[row + 3])] = overrides[row + 4];
  }
  return out;
}

class GoldenDecode : public testing::TestWithParam<int> {};

TEST_P(GoldenDecode, gives_the_reference_detections_in_its_order) {
  const GoldenFile file(SSD_TEST_DATA "/golden/decode.h5");
  const auto group = fmt::format("case_{:02}", GetParam());
  const auto name = file.text_attribute(group, "name") + " " + file.text_attribute(group, "note");
  const bool has_ties = name.find("ties") != std::string::npos;
  const bool has_infinities = name.find("nonfinite") != std::string::npos;
  const auto input = load_case(file, GetParam(), group);
  NmsOptions options;
  options.iou_threshold = static_cast<float>(file.attribute<double>(group, "criteria"));
  options.max_output = static_cast<int>(file.attribute<std::int64_t>(group, "max_output"));
  const auto decoded = decode_detections(input.locations, input.confidences, default_boxes_tensor(), options);
  for (std::size_t n = 0; n < decoded.size(); ++n) {
    const auto path = fmt::format("{}/image_{}/", group, n);
    auto boxes = file.read<float>(path + "boxes_ltrb");
    auto labels = file.read<std::int64_t>(path + "labels");
    auto scores = file.read<float>(path + "scores");
    // The reference's order is ascending; a box that is not finite is dropped here, which README allows.
    using Row = std::tuple<float, std::int64_t, std::array<float, 4>>;
    std::vector<Row> wanted, got;
    for (std::size_t i = labels.size(); i-- > 0;) {
      const std::array<float, 4> box{boxes[4 * i], boxes[4 * i + 1], boxes[4 * i + 2], boxes[4 * i + 3]};
      if (has_infinities && !std::isfinite(box[0] + box[1] + box[2] + box[3])) continue;
      wanted.emplace_back(scores[i], labels[i], box);
    }
    for (std::size_t i = 0; i < decoded[n].scores.size(); ++i) {
      got.emplace_back(decoded[n].scores[i], decoded[n].labels[i], decoded[n].boxes_ltrb[i]);
    }
    ASSERT_EQ(got.size(), wanted.size()) << name;
    if (has_ties) {  // equal scores: as sets
      std::sort(got.begin(), got.end());
      std::sort(wanted.begin(), wanted.end());
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(std::get<1>(got[i]), std::get<1>(wanted[i])) << name << " " << i;
      EXPECT_NEAR(std::get<0>(got[i]), std::get<0>(wanted[i]), 1e-6);  // README, section 8
      for (std::size_t c = 0; c < 4; ++c)
        EXPECT_NEAR(std::get<2>(got[i])[c], std::get<2>(wanted[i])[c], 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenDecode, testing::Range(0, 15));

}  // namespace
}  // namespace ssd
