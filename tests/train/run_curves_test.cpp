#include "train/run_curves.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RunCurves, has_a_file_from_the_start_and_the_points_after_each_write) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "curves.svg";
  RunCurves curves(path);
  EXPECT_THAT(text_of(path), HasSubstr("</svg>"));
  EXPECT_THAT(text_of(path), Not(HasSubstr("<polyline")));
  curves.add_loss(1, 8);
  curves.add_loss(2, 4);
  curves.add_evaluation(1, 0.25, 0.5);
  curves.add_evaluation(2, 0.5, 0.75);
  EXPECT_THAT(text_of(path), Not(HasSubstr("<polyline")));
  curves.write();
  const auto svg = text_of(path);
  // Axes of 700 x 395 from (75, 440) on: x is 0 to 2 epochs, y 0 to the largest loss and to the largest AP50.
  EXPECT_THAT(svg, HasSubstr("points=\"425.00,45.00 775.00,242.50\""));
  EXPECT_THAT(svg, HasSubstr("points=\"425.00,308.33 775.00,176.67\""));
  EXPECT_THAT(svg, HasSubstr("points=\"425.00,176.67 775.00,45.00\""));
  for (const char* text : {">loss<", ">AP<", ">AP50<", ">epochs trained<"}) EXPECT_THAT(svg, HasSubstr(text));
}

TEST(RunCurves, an_ap_of_minus_one_is_no_point) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "curves.svg";
  RunCurves curves(path);
  curves.add_evaluation(1, -1, -1);
  curves.write();
  EXPECT_THAT(text_of(path), Not(HasSubstr("<circle")));
}

TEST(RunCurves, a_file_that_cannot_be_written_is_an_error_before_training) {
  EXPECT_THAT(message_of<Error>([] { RunCurves("/nowhere/curves.svg"); }), HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace ssd
