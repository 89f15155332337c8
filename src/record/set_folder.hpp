// The files of one split in a folder while they are written (FORMAT.md, "Files of a set"): finished shards
// wait under hidden names, also for a later run where this one dies, and publish() makes the set appear. One
// process at a time writes a split, which a lock sees to; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "record/shard_writer.hpp"
#include "record/split.hpp"
#include "record/writer_lock.hpp"

namespace ssd {

enum class ExistingSet {
  none,
  same,   // complete, readable, of the same identity
  other,  // complete by its manifest, but of another identity or damaged
};

class SetFolder {
 public:
  // Makes the folder where there is none. Throws Error where it cannot be written or another run is writing
  // this split.
  SetFolder(std::filesystem::path folder, Split split);

  ExistingSet existing(const std::string& set_identity) const;

  // What dead runs left of this split: temporary files are removed, and shards that wait too, unless they are
  // of a set of this many; such shards without a manifest, left by a run that died while it published, wait
  // again. Whether their content is what it should be is for the caller to see. Returns how many were
  // removed.
  std::size_t clean(std::uint32_t shard_count);

  // Where shard `index` of `count` waits until publish().
  std::filesystem::path temporary_path(std::uint32_t index, std::uint32_t count) const;

  // Renames the waiting shards to their names and writes the manifest last; an existing set of this split is
  // removed first.
  void publish(const std::vector<ShardSummary>& shards, const std::string& manifest_text);

 private:
  void remove_published_set();

  std::filesystem::path folder_;
  Split split_;
  WriterLock lock_;
};

}  // namespace ssd
