// How gradients are cut into buckets for the allreduce. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ssd {

struct BucketOptions {
  std::int64_t first_bucket_bytes = 1 << 20;  // small, so that communication starts early in backward
  std::int64_t bucket_bytes = 8 << 20;
};

// Entries [first_entry, end_entry) of a block in its order.
struct Bucket {
  std::size_t first_entry = 0;
  std::size_t end_entry = 0;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

// Fills buckets in order until the next entry would go beyond the limit; an entry larger than it has a bucket
// alone.
std::vector<Bucket> plan_buckets(std::span<const std::int64_t> entry_bytes, const BucketOptions& options);

}  // namespace ssd
