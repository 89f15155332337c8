#include "train/bucket_plan.hpp"

namespace ssd {

std::vector<Bucket> plan_buckets(std::span<const std::int64_t> entry_bytes, const BucketOptions& options) {
  std::vector<Bucket> buckets;
  std::int64_t filled_bytes = 0;
  for (std::size_t i = 0; i < entry_bytes.size(); ++i) {
    const auto limit = buckets.size() <= 1 ? options.first_bucket_bytes : options.bucket_bytes;
    if (buckets.empty() || filled_bytes + entry_bytes[i] > limit) {
      buckets.push_back({i, i});
      filled_bytes = 0;
    }
    buckets.back().end_entry = i + 1;
    filled_bytes += entry_bytes[i];
  }
  return buckets;
}

}  // namespace ssd
