// The key "ssd" of a checkpoint: what this program stores beyond the reference's keys. FORMAT.md lists its
// contents.
#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/checkpoint_item.hpp"
#include "checkpoint/value.hpp"

namespace ssd {

inline constexpr const char* kOwnSectionKey = "ssd";
// Raised when a reader of the version before would misunderstand the file; new keys alone do not raise it.
inline constexpr std::int64_t kCheckpointFormatVersion = 1;

// A section to add keys to: it has format_version and producer.
Dict make_own_section();

// The section of a file; empty where the reference wrote it. Throws Error for a version newer than this
// build's.
std::optional<CheckpointItem> own_section_of(const CheckpointItem& root);

}  // namespace ssd
