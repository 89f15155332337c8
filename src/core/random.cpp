#include "core/random.hpp"

#include "core/error.hpp"

namespace ssd {
namespace {

// Multipliers and Weyl constants of Philox4x32: Salmon et al. 2011, table 1 and the Random123 library.
constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t p0 = kMultiplier0 * counter[0];
    const std::uint64_t p1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// The key is the seed; the counter holds the block number, id and a word mixed of purpose and epoch. Purpose
// takes the top 4 bits: epochs below 2^28 never meet another purpose.
RandomStream::RandomStream(std::uint64_t seed, RandomPurpose purpose, std::uint32_t epoch, std::uint64_t id)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(id >> 32),
               (static_cast<std::uint32_t>(purpose) << 28) | epoch} {
  SSD_EXPECT(epoch < (1U << 28));
}

std::uint32_t RandomStream::next_u32() {
  if (used_ == 4) {
    block_ = philox4x32_10(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

double RandomStream::uniform() {
  const std::uint64_t high = next_u32() >> 5;  // 27 bits
  const std::uint64_t low = next_u32() >> 6;   // 26 bits
  return static_cast<double>((high << 26) | low) * 0x1p-53;
}

double RandomStream::uniform(double low, double high) {
  return low + (high - low) * uniform();
}

// Lemire, "Fast Random Integer Generation in an Interval", 2019: multiply, reject the biased low part.
std::uint32_t RandomStream::below(std::uint32_t bound) {
  SSD_EXPECT(bound > 0);
  const std::uint32_t threshold = (0U - bound) % bound;
  while (true) {
    const std::uint64_t product = static_cast<std::uint64_t>(next_u32()) * bound;
    if (static_cast<std::uint32_t>(product) >= threshold) return static_cast<std::uint32_t>(product >> 32);
  }
}

}  // namespace ssd
