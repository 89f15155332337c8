// A stable sort by score, highest first, for many scores that spread over a range: they are dealt into as
// many buckets as there are scores, and few are left to sort in each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ssd {

// Records have a finite `score`. One object a thread; its buffers are used again.
template <class Record>
class ScoreSorter {
 public:
  void sort(std::vector<Record>& records) {
    if (records.size() < kFewest) return std::stable_sort(records.begin(), records.end(), is_before);
    const auto [least, most] = std::minmax_element(
        records.begin(), records.end(), [](const Record& a, const Record& b) { return a.score < b.score; });
    const double highest = most->score;
    const double scale = static_cast<double>(records.size() - 1) / (highest - least->score);
    if (!std::isnormal(scale)) return std::stable_sort(records.begin(), records.end(), is_before);
    // Rounding never turns the order of two scores round, so neither does this.
    const auto bucket_of = [&](const Record& record) {
      return std::min(static_cast<std::size_t>((highest - record.score) * scale), records.size() - 1);
    };
    places_.assign(records.size() + 1, 0);
    for (const auto& record : records) ++places_[bucket_of(record) + 1];
    for (std::size_t i = 1; i < places_.size(); ++i) places_[i] += places_[i - 1];
    scratch_.resize(records.size());
    for (const auto& record : records) scratch_[places_[bucket_of(record)]++] = record;
    records.swap(scratch_);
    std::size_t begin = 0;  // of a bucket; places_ now holds the ends
    for (std::size_t bucket = 0; bucket < records.size(); ++bucket) {
      const auto end = static_cast<std::size_t>(places_[bucket]);
      sort_bucket(records.data() + begin, records.data() + end);
      begin = end;
    }
  }

 private:
  static bool is_before(const Record& a, const Record& b) { return a.score > b.score; }

  static void sort_bucket(Record* begin, Record* end) {
    constexpr std::ptrdiff_t kMostToInsert = 16;
    if (end - begin > kMostToInsert) return std::stable_sort(begin, end, is_before);
    for (auto* at = begin + (begin != end ? 1 : 0); at < end; ++at) {
      const auto record = *at;
      auto* hole = at;
      for (; hole > begin && is_before(record, hole[-1]); --hole) *hole = hole[-1];
      *hole = record;
    }
  }

  static constexpr std::size_t kFewest = 64;
  std::vector<std::uint32_t> places_;
  std::vector<Record> scratch_;
};

}  // namespace ssd
