#include "report/plot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace ssd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Whether every element that is opened is closed in order, with quoted attributes and no stray markup in
// between.
bool is_well_formed(std::string_view xml) {
  std::vector<std::string> open;
  std::size_t roots = 0;
  while (!xml.empty()) {
    if (xml.front() == '&') {
      const auto end = xml.find(';');
      const auto name = end == std::string_view::npos ? "" : xml.substr(1, end - 1);
      if (name != "amp" && name != "lt" && name != "gt" && name != "quot") return false;
      xml.remove_prefix(end + 1);
      continue;
    }
    if (xml.front() != '<') {
      if (open.empty() && std::isspace(static_cast<unsigned char>(xml.front())) == 0) return false;
      xml.remove_prefix(1);
      continue;
    }
    const auto end = xml.find('>');
    if (end == std::string_view::npos) return false;
    auto tag = xml.substr(1, end - 1);
    xml.remove_prefix(end + 1);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0 || tag.find('<') != std::string_view::npos)
      return false;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
      continue;
    }
    if (open.empty() && ++roots > 1) return false;
    if (tag.ends_with('/')) continue;
    open.emplace_back(tag.substr(0, tag.find_first_of(" \n")));
  }
  return open.empty() && roots == 1;
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Plot, the_corners_of_the_data_are_the_corners_of_the_axes) {
  const auto svg = svg_of({"AP", "epoch", "AP", {{"val", {{0, 0}, {10, 1}, {5, 0.5}}}}});
  EXPECT_TRUE(is_well_formed(svg));
  // 800 x 500 with margins of 75, 25, 45 and 60.
  EXPECT_THAT(svg, HasSubstr("points=\"75.00,440.00 775.00,45.00 425.00,242.50\""));
  EXPECT_EQ(count_of(svg, "<circle"), 3U);
}

TEST(Plot, has_title_labels_ticks_and_a_legend_entry_for_each_series) {
  const auto svg =
      svg_of({"Loss", "iteration", "loss", {{"train", {{0, 1}, {100, 3}}}, {"val", {{0, 2}, {100, 2}}}}});
  for (const char* text :
       {">Loss<", ">iteration<", ">loss<", ">train<", ">val<", ">0<", ">100<", ">2<", ">3<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_EQ(count_of(svg, "<polyline"), 2U);
}

TEST(Plot, text_cannot_break_the_markup) {
  const auto svg = svg_of({"a < b & \"c\" > d\x01", "<script>", "", {{"]]>&", {{0, 0}, {1, 1}}}}});
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; &quot;c&quot; &gt; d<"));
}

TEST(Plot, values_that_are_not_finite_leave_a_gap) {
  const double nan = std::nan("");
  const auto svg = svg_of({"", "", "", {{"loss", {{0, 0}, {1, 1}, {2, nan}, {3, 0}, {4, 1}}}}});
  EXPECT_EQ(count_of(svg, "<polyline"), 2U);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_EQ(count_of(svg, "<circle"), 4U);
}

TEST(Plot, nothing_and_one_point_and_a_constant_can_be_drawn) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& points : std::vector<std::vector<PlotPoint>>{{},
                                                                {{5, 5}},
                                                                {{0, 0}},
                                                                {{0, -3}, {1, -3}},
                                                                {{infinity, 0}},
                                                                {{1e-300, 1e300}, {2e-300, -1.7e308}},
                                                                {{1e15, 1e15}, {1e15 + 1, 1e15 - 1}}}) {
    const auto svg = svg_of({"t", "x", "y", {{"s", points}}});
    EXPECT_TRUE(is_well_formed(svg));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
  EXPECT_TRUE(is_well_formed(svg_of({})));
}

TEST(Plot, a_long_series_is_a_line_without_markers) {
  PlotSeries series{"loss", {}};
  for (int i = 0; i < 6000; ++i) series.points.push_back({static_cast<double>(i), std::exp(-i / 1000.0)});
  const auto svg = svg_of({"Loss", "iteration", "loss", {series}});
  EXPECT_EQ(count_of(svg, "<circle"), 0U);
  EXPECT_TRUE(is_well_formed(svg));
}

TEST(Plot, the_legend_stays_clear_of_the_points) {
  // A rising curve ends in the corner at the right and top, where the legend would be otherwise.
  const auto legend_top = [](const Plot& plot) {
    const auto svg = svg_of(plot);
    const auto at = svg.find("<rect x=");  // the background has no x
    return std::stod(svg.substr(svg.find("y=\"", at) + 3));
  };
  EXPECT_LT(legend_top({"", "", "", {{"falling", {{0, 1}, {1, 0}}}}}), 100);
  EXPECT_GT(legend_top({"", "", "", {{"rising", {{0, 0}, {1, 1}}}}}), 350);
}

TEST(Plot, ticks_are_round_and_within_the_axis) {
  EXPECT_THAT(round_ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(round_ticks(0, 1, 8), testing::SizeIs(6));
  EXPECT_THAT(round_ticks(-1, 1, 4), ElementsAre(-1, -0.5, 0, 0.5, 1));
  EXPECT_THAT(round_ticks(3, 17, 3), ElementsAre(5, 10, 15));
}

TEST(Plot, the_axes_reach_to_points_that_are_only_to_be_shown) {
  const auto svg = svg_of({"", "", "", {{"a", {{5, 1}, {10, 0.5}}}}, {{0, 0}}});
  EXPECT_THAT(svg, HasSubstr("points=\"425.00,45.00 775.00,242.50\""));
  EXPECT_EQ(count_of(svg, "<circle"), 2U);
}

TEST(Plot, several_stand_one_below_the_other) {
  const std::vector<Plot> plots{{"first", "", "", {{"a", {{0, 0}, {1, 1}}}}},
                                {"second", "", "", {{"b", {{0, 0}, {1, 1}}}}}};
  const auto svg = stacked_svg_of(plots);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 800 1000\""));
  EXPECT_LT(svg.find(">first<"), svg.find("translate(0 500)"));
  EXPECT_GT(svg.find(">second<"), svg.find("translate(0 500)"));
}

TEST(Plot, is_written_to_its_file) {
  const std::filesystem::path path = testing::TempDir() + "plot_test.svg";
  const Plot plot{"AP", "epoch", "AP", {{"val", {{21, 0.1}, {31, 0.2}}}}};
  write_plot(path, plot);
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), svg_of(plot));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ssd
