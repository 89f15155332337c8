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
  curves.add_loss(0.5, 8);
  curves.add_loss(1, 4);
  curves.add_evaluation(1, 0.25, 0.5);
  curves.add_evaluation(2, 0.5, 0.75);
  EXPECT_THAT(text_of(path), Not(HasSubstr("<polyline")));
  curves.write();
  const auto svg = text_of(path);
  // The corners of the axes (report/plot_test.cpp): the loss falls over its whole plot, AP begins at the bottom of the
  // other and AP50 ends at its top.
  EXPECT_THAT(svg, HasSubstr("points=\"75.00,45.00 775.00,440.00\""));
  EXPECT_THAT(svg, HasSubstr("points=\"75.00,440.00 775.00,242.50\""));
  EXPECT_THAT(svg, HasSubstr("points=\"75.00,242.50 775.00,45.00\""));
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
