// What kind of file this is, by its first bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ssd {

enum class Container { zip, legacy, foreign };

inline constexpr std::size_t kForeignHeadBytes = 512;

// head: the first kForeignHeadBytes bytes of the file, or all of a shorter one.
Container container_of(std::span<const std::byte> head);

// For a message: "an empty file", "an HTML page (a failed download?)", ...
std::string describe_foreign_file(std::span<const std::byte> head);

}  // namespace ssd
