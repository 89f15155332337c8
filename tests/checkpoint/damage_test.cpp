// Damage of every kind: a damaged file gives an Error or the right values, never a crash, a hang or wrong
// tensors. The legacy format has no checksums: there, only crashes and other exceptions are excluded.
#include <gtest/gtest.h>

#include <cstdlib>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/golden_files.hpp"
#include "checkpoint/pickle_format.hpp"
#include "checkpoint/pickle_reader.hpp"
#include "checkpoint/torch_archive.hpp"
#include "checkpoint/zip_reader.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "support/count_allocations.hpp"

namespace ssd {
namespace {

using FileBytes = std::vector<std::byte>;

bool long_form() {
  const char* value = std::getenv("SSD_TEST_LONG");
  return value != nullptr && std::string(value) == "1";
}

FileBytes written_again(const FileBytes& file) {
  FileBytes bytes;
  write_torch_archive(read_checkpoint_bytes(file), [&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  return bytes;
}

enum class Verdict { refused, same, different };

Verdict read_damaged(const FileBytes& bytes, const std::string& good) {
  try {
    return text_of_value(read_checkpoint_bytes(bytes)) == good ? Verdict::same : Verdict::different;
  } catch (const Error&) {
    return Verdict::refused;
  }
}

void expect_truncation_is_refused(const FileBytes& file) {
  for (std::size_t length = 0; length < file.size(); ++length) {
    const FileBytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THROW(read_checkpoint_bytes(cut), Error) << "the first " << length << " bytes";
  }
}

// Damages each byte in turn; gives back how often the damage was not noticed because it changed nothing.
std::size_t unnoticed_flips(FileBytes file, std::byte flip) {
  const auto good = text_of_value(read_checkpoint_bytes(file));
  std::size_t unnoticed = 0;
  for (std::size_t i = 0; i < file.size(); ++i) {
    file[i] ^= flip;
    const auto verdict = read_damaged(file, good);
    EXPECT_NE(verdict, Verdict::different) << "byte " << i;
    unnoticed += verdict == Verdict::same ? 1 : 0;
    file[i] ^= flip;
  }
  return unnoticed;
}

TEST(DamagedFile, every_truncation_is_refused) {
  const auto of_torch = bytes_of(small_file("tiny_zip.pt"));
  expect_truncation_is_refused(of_torch);
  expect_truncation_is_refused(written_again(of_torch));
  expect_truncation_is_refused(bytes_of(small_file("tiny_legacy.pt")));
}

TEST(DamagedFile, a_flipped_byte_never_gives_other_values) {
  const auto of_torch = bytes_of(small_file("tiny_zip.pt"));
  const auto ours = written_again(of_torch);
  for (const auto flip : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
    EXPECT_LT(unnoticed_flips(of_torch, flip), of_torch.size());
    // Unnoticed in our files is damage to padding, time stamps and the like: less than half of so small a
    // file.
    EXPECT_LT(unnoticed_flips(ours, flip), ours.size() / 2);
  }
}

TEST(DamagedFile, a_flipped_byte_of_the_old_format_is_no_crash) {
  auto file = bytes_of(small_file("tiny_legacy.pt"));
  std::size_t refused = 0;
  for (const auto flip : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
    for (auto& byte : file) {
      byte ^= flip;
      refused += read_damaged(file, "") == Verdict::refused ? 1 : 0;
      byte ^= flip;
    }
  }
  EXPECT_GT(refused, file.size());
}

// The pickles of good and hostile files, changed at random places: behind the CRC everything can be met.
TEST(DamagedPickle, random_changes_end_in_a_value_or_an_error) {
  std::vector<FileBytes> pickles;
  for (const auto* name :
       {"tiny_zip.pt", "tiny_scalars.pt", "tiny_views.pt", "tiny_parameters.pt", "broken_memo_bomb.pt"}) {
    const auto file = bytes_of(small_file(name));
    const MemorySource source(file);
    pickles.push_back(ZipReader(source).read("archive/data.pkl"));
  }
  RandomStream random(1, RandomPurpose::test, 0, 0);
  const auto below = [&](std::size_t bound) { return random.below(static_cast<std::uint32_t>(bound)); };
  const int rounds = long_form() ? 2000000 : 20000;
  int read = 0, refused = 0;
  for (int round = 0; round < rounds; ++round) {
    auto pickle = pickles[below(pickles.size())];
    for (auto changes = 1 + below(4); changes > 0; --changes) {
      // Half of the changes copy a piece of the pickle to another place: opcodes in odd surroundings.
      const auto to = below(pickle.size()), from = below(pickle.size());
      const auto length = std::min<std::size_t>({1 + below(12), pickle.size() - to, pickle.size() - from});
      if (below(2) == 0) {
        const FileBytes piece(pickle.begin() + from,
                              pickle.begin() + from + static_cast<std::ptrdiff_t>(length));
        std::copy(piece.begin(), piece.end(), pickle.begin() + to);
      } else {
        pickle[to] = static_cast<std::byte>(below(256));
      }
    }
    try {
      read_pickle(pickle);
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(read, rounds / 100);
  EXPECT_GT(refused, rounds / 100);
}

FileBytes pickle_of(const std::string& opcodes, std::size_t repeated, const std::string& end) {
  std::string text = "\x80\x02";
  for (std::size_t i = 0; i < repeated; ++i) text += opcodes;
  text += end;
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(HostilePickle, stays_within_its_bounds) {
  constexpr std::size_t kMany = kMaxPickleBytes / 8;
  const std::vector<FileBytes> pickles{
      pickle_of("}", kMany * 7, "."),  pickle_of("]", kMany * 7, "."),
      pickle_of(")", kMany * 7, "."),  pickle_of("(", kMany * 7, "."),
      pickle_of("(t", kMany * 3, "."), pickle_of("ccollections\nOrderedDict\n)R", kMany / 4, ".")};
  for (const auto& pickle : pickles) {
    reset_bytes_allocated();
    EXPECT_THROW(read_pickle(pickle), Error);
    EXPECT_LE(bytes_allocated(), std::size_t{600} << 20);
  }
}

TEST(HostilePickle, a_text_cannot_be_encoded_over_and_over_again) {
  using namespace std::string_literals;
  const std::string text(100000, 'x');
  std::string pickle =
      "\x80\x02](c_codecs\nencode\nq\0X\xa0\x86\x01\0"s + text + "X\x06\0\0\0latin1\x86q\x01R"s;
  for (int i = 0; i < 1000; ++i) pickle += "h\0h\x01R"s;
  pickle += "e.";
  reset_bytes_allocated();
  EXPECT_THROW(read_pickle(std::as_bytes(std::span(pickle))), Error);
  EXPECT_LE(bytes_allocated(), std::size_t{2} << 20);
}

TEST(HostilePickle, a_container_cannot_lie_within_itself) {
  using namespace std::string_literals;
  for (const auto& pickle : {"\x80\x02]q\0h\0a."s, "\x80\x02}q\0K\x01h\0s."s, "\x80\x02]q\0h\0\x85\x61."s,
                             "\x80\x02]q\0]h\0ah\0K\x01a."s}) {
    EXPECT_THROW(read_pickle(std::as_bytes(std::span(pickle))), Error);
  }
}

TEST(HostilePickle, a_tensor_that_torch_would_change_on_use_is_refused) {
  using namespace std::string_literals;
  const auto tensor = [](const std::string& metadata) {
    return "\x80\x02"s +
           "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"s +
           "0X\x03\0\0\0cpuK\x01tQK\0))\x89N"s + metadata + "tR."s;
  };
  const auto plain = tensor("N"), negated = tensor("}X\x03\0\0\0neg\x88s"s);
  EXPECT_NE(read_pickle(std::as_bytes(std::span(plain))).root.get_if<TensorValue>(), nullptr);
  EXPECT_THROW(read_pickle(std::as_bytes(std::span(negated))), Error);
}

}  // namespace
}  // namespace ssd
