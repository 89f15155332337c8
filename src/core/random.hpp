// Counter-based random numbers: the same (seed, epoch, stream id) gives the same sequence on every rank,
// thread and machine, and no state has to be saved. Philox4x32-10 of Salmon, Moraes, Dror, Shaw, "Parallel
// Random Numbers: As Easy as 1, 2, 3", SC11, section 4.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace ssd {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// One block of four random words.
PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key);

// What a stream of random numbers is used for; streams of different purposes never share numbers.
enum class RandomPurpose : std::uint32_t { augmentation = 1, epoch_order = 2, shard_order = 3, test = 4 };

// A sequence of random numbers. Not thread safe; cheap to make, one for each sample.
class RandomStream {
 public:
  // seed: the run's. epoch and id: what the stream belongs to (an epoch and an image, say); id uses all 64
  // bits.
  RandomStream(std::uint64_t seed, RandomPurpose purpose, std::uint32_t epoch, std::uint64_t id);

  std::uint32_t next_u32();
  double uniform();                          // [0, 1), 53 bits
  double uniform(double low, double high);   // [low, high)
  std::uint32_t below(std::uint32_t bound);  // {0, ..., bound - 1}, without bias; bound > 0

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_{};
  unsigned used_ = 4;  // words of block_ already given out
};

// Fisher-Yates shuffle; the result depends on the stream alone.
template <class T>
void shuffle(std::span<T> values, RandomStream& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    const auto j = random.below(static_cast<std::uint32_t>(i));
    std::swap(values[i - 1], values[j]);
  }
}

}  // namespace ssd
