// Constants of the zip format. Source: PKWARE APPNOTE 6.3.10, sections 4.3.7 (local header), 4.3.12 (central
// header), 4.3.14 (zip64 end record), 4.3.15 (its locator), 4.3.16 (end record), 4.5.3 (zip64 extra field).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ssd::zip {

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kZip64EndSignature = 0x06064b50;
inline constexpr std::uint32_t kZip64LocatorSignature = 0x07064b50;
inline constexpr std::uint32_t kEndSignature = 0x06054b50;

// Bytes of the fixed parts.
inline constexpr std::size_t kLocalBytes = 30;
inline constexpr std::size_t kCentralBytes = 46;
inline constexpr std::size_t kZip64EndBytes = 56;
inline constexpr std::size_t kZip64LocatorBytes = 20;
inline constexpr std::size_t kEndBytes = 22;

inline constexpr std::uint16_t kVersionZip64 = 45;
inline constexpr std::uint16_t kFlagEncrypted = 1;
inline constexpr std::uint16_t kFlagUtf8 = 1 << 11;
inline constexpr std::uint16_t kMethodStored = 0;
inline constexpr std::uint16_t kDate1980 =
    1 << 5 | 1;  // 1 January 1980, the earliest: files do not differ by time
inline constexpr std::uint16_t kExtraZip64 = 1;
inline constexpr std::uint16_t kExtraPadding = 0x4246;  // "FB", what torch pads with
inline constexpr std::uint16_t kSeeZip64_16 = 0xffff;   // the number is in the zip64 record
inline constexpr std::uint32_t kSeeZip64_32 = 0xffffffff;

inline constexpr std::uint64_t kAlignment = 64;  // of an entry's data, as torch has it

}  // namespace ssd::zip
