#include "core/read_text_file.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

TEST(ReadTextFile, gives_every_byte) {
  const TemporaryFolder folder;
  std::string text(10'000, 'x');
  text[5000] = '\0';
  for (const std::size_t size : {std::size_t{0}, std::size_t{4096}, text.size()}) {
    write_text(folder.path() / "a", text.substr(0, size));
    EXPECT_EQ(read_text_file(folder.path() / "a"), text.substr(0, size));
  }
}

TEST(ReadTextFile, says_what_is_wrong_with_a_file) {
  const TemporaryFolder folder;
  const auto whole = folder.path().string(), none = whole + "/none";
  EXPECT_EQ(message_of<Error>([&] { read_text_file(none); }),
            "cannot open '" + none + "': No such file or directory");
  EXPECT_EQ(message_of<Error>([&] { read_text_file(whole); }), "cannot read '" + whole + "': Is a directory");
}

}  // namespace
}  // namespace ssd
