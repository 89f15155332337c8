#include "infer/read_picture.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "data/batch.hpp"
#include "image/orientation.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

const std::filesystem::path kNasty = std::filesystem::path(SSD_TEST_DATA) / "jpeg_nasty";
const std::filesystem::path kTurned = kNasty / "exif/orientation_6.jpg";

using Input = std::vector<std::uint8_t>;

RgbImage read(const std::filesystem::path& path, const ImageEntry* truth, Input& input) {
  input.assign(kSampleBytes, 0);
  return PictureReader().read({path, ImageId(1), truth}, input.data());
}

TEST(PictureReader, gives_the_upright_picture_and_its_scaled_copy) {
  RgbImage stored;
  JpegDecoder().decode(bytes_of(kTurned), stored);
  const auto expected = apply_orientation(stored, 6);
  Input input, expected_input(kSampleBytes);
  const auto picture = read(kTurned, nullptr, input);
  EXPECT_EQ(picture.width, expected.width);
  EXPECT_EQ(picture.pixels, expected.pixels);
  Resizer().resize(view_of(expected), kInputSide, kInputSide, expected_input.data());
  EXPECT_EQ(input, expected_input);
}

TEST(PictureReader, leaves_a_picture_as_stored_where_the_truth_is_of_that_size) {
  RgbImage stored;
  JpegDecoder().decode(bytes_of(kTurned), stored);
  const ImageEntry truth{ImageId(1), "", stored.width, stored.height};
  Input input;
  EXPECT_EQ(read(kTurned, &truth, input).pixels, stored.pixels);
}

TEST(PictureReader, names_the_file_and_what_is_wrong_with_it) {
  Input input;
  const auto message = [&](const std::filesystem::path& path, const ImageEntry* truth = nullptr) {
    return message_of<Error>([&] { read(path, truth, input); });
  };
  const ImageEntry truth{ImageId(1), "", 5, 4};
  EXPECT_TRUE(
      message(kTurned, &truth).starts_with("'" + kTurned.string() + "': the truth says 5 x 4 pixels"));
  EXPECT_EQ(message("/nowhere/a.jpg"), "'/nowhere/a.jpg': No such file or directory");
  for (const auto& entry : std::filesystem::directory_iterator(kNasty / "reject")) {
    EXPECT_TRUE(message(entry.path()).starts_with("'" + entry.path().string() + "': ")) << entry.path();
  }
  EXPECT_TRUE(message(kNasty).starts_with("'" + kNasty.string() + "': "));
}

}  // namespace
}  // namespace ssd
