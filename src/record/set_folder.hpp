// The files of one split in a folder while they are written (FORMAT.md, "Files of a set"): what an earlier
// run left is looked at and cleaned, finished shards wait under temporary names, publish() makes the set
// appear. One process at a time writes a folder; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "record/shard_writer.hpp"
#include "record/split.hpp"

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
  // Removes the temporary files that were not published.
  ~SetFolder();
  SetFolder(const SetFolder&) = delete;
  SetFolder& operator=(const SetFolder&) = delete;

  ExistingSet existing(const std::string& set_identity) const;

  // Removes what dead runs left of this split: temporary files, and shards without a manifest. Returns their
  // number.
  std::size_t remove_leftovers();

  // Where shard `index` of `count` is to be written.
  std::filesystem::path temporary_path(std::uint32_t index, std::uint32_t count);

  // Renames the shards to their names and writes the manifest last; an existing set of this split is removed
  // first.
  void publish(const std::vector<ShardSummary>& shards, const std::string& manifest_text);

 private:
  void remove_published_set();

  std::filesystem::path folder_;
  Split split_;
  std::vector<std::filesystem::path> temporaries_;
};

}  // namespace ssd
