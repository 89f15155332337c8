#include "checkpoint/own_section.hpp"

#include "core/error.hpp"

namespace ssd {

Dict make_own_section() {
  Dict section;
  section.set("format_version", kCheckpointFormatVersion);
  section.set("producer", "ssd");
  return section;
}

std::optional<CheckpointItem> own_section_of(const CheckpointItem& root) {
  auto section = root.find(kOwnSectionKey);
  if (!section) return std::nullopt;
  const auto version = section->at("format_version");
  if (version.integer() < 1 || version.integer() > kCheckpointFormatVersion) {
    throw version.error(
        fmt::format("is {} (this build reads 1 to {}); resume with the version of the program that "
                    "wrote it",
                    version.integer(), kCheckpointFormatVersion));
  }
  return section;
}

}  // namespace ssd
