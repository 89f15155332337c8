#include "checkpoint/zip_reader.hpp"

#include <algorithm>
#include <utility>

#include "checkpoint/little_endian.hpp"
#include "core/utf8.hpp"
#include "checkpoint/zip_format.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

using namespace zip;
using Block = std::span<const std::byte>;

std::uint16_t u16(Block block, std::size_t offset) {
  return load_little_endian<std::uint16_t>(block, offset);
}
std::uint32_t u32(Block block, std::size_t offset) {
  return load_little_endian<std::uint32_t>(block, offset);
}
std::uint64_t u64(Block block, std::size_t offset) {
  return load_little_endian<std::uint64_t>(block, offset);
}

std::string text_of(Block block) {
  return {reinterpret_cast<const char*>(block.data()), block.size()};
}

struct Directory {
  std::uint64_t count;  // entries
  std::uint64_t bytes;
  std::uint64_t offset;
  std::uint64_t end;  // offset of the record after it
};

// A number of the end record is that of the zip64 record, or says that it is there.
template <class Short>
bool agrees(Short in_end_record, std::uint64_t in_zip64_record) {
  return in_end_record == static_cast<Short>(~Short{0}) || in_end_record == in_zip64_record;
}

Directory zip64_directory(const ByteSource& source, Block end, Block locator, std::uint64_t locator_offset) {
  const auto offset = u64(locator, 8);
  SSD_VALIDATE(u32(locator, 4) == 0 && u32(locator, 16) == 1, "the zip archive is split over several disks");
  SSD_VALIDATE(locator_offset >= kZip64EndBytes && offset == locator_offset - kZip64EndBytes,
               "the zip64 end record is not where its locator says ({})", offset);
  const auto record = source.read(offset, kZip64EndBytes);
  SSD_VALIDATE(u32(record, 0) == kZip64EndSignature && u64(record, 4) == kZip64EndBytes - 12,
               "the zip64 end record is damaged");
  SSD_VALIDATE(u32(record, 16) == 0 && u32(record, 20) == 0 && u64(record, 24) == u64(record, 32),
               "the zip archive is split over several disks");
  const Directory directory{u64(record, 32), u64(record, 40), u64(record, 48), offset};
  SSD_VALIDATE(agrees(u16(end, 10), directory.count) && agrees(u32(end, 12), directory.bytes) &&
                   agrees(u32(end, 16), directory.offset),
               "the two end records of the zip archive disagree");
  return directory;
}

Directory find_directory(const ByteSource& source) {
  SSD_VALIDATE(source.size() >= kEndBytes, "the zip archive is cut short ({} bytes)", source.size());
  const auto end_offset = source.size() - kEndBytes;
  const auto end = source.read(end_offset, kEndBytes);
  SSD_VALIDATE(u32(end, 0) == kEndSignature && u16(end, 20) == 0,
               "the zip archive does not end with its directory; it is cut short or damaged");
  SSD_VALIDATE(u16(end, 4) == 0 && u16(end, 6) == 0 && u16(end, 8) == u16(end, 10),
               "the zip archive is split over several disks");
  if (end_offset >= kZip64LocatorBytes) {
    const auto locator = source.read(end_offset - kZip64LocatorBytes, kZip64LocatorBytes);
    if (u32(locator, 0) == kZip64LocatorSignature) {
      return zip64_directory(source, end, locator, end_offset - kZip64LocatorBytes);
    }
  }
  return {u16(end, 10), u32(end, 12), u32(end, 16), end_offset};
}

// Replaces the numbers that stand in the zip64 extra field: bytes, stored bytes, offset, each only where its
// short field is full of ones.
void apply_zip64(Block extra, std::uint64_t& bytes, std::uint64_t& stored_bytes, std::uint64_t& offset) {
  while (extra.size() >= 4) {
    const auto id = u16(extra, 0);
    const std::size_t length = u16(extra, 2);
    SSD_VALIDATE(length <= extra.size() - 4, "an extra field of the zip directory is cut short");
    auto field = extra.subspan(4, length);
    extra = extra.subspan(4 + length);
    if (id != kExtraZip64) continue;
    for (auto* number : {&bytes, &stored_bytes, &offset}) {
      if (*number != kSeeZip64_32) continue;
      SSD_VALIDATE(field.size() >= 8, "a zip64 field of the zip directory is cut short");
      *number = u64(field, 0);
      field = field.subspan(8);
    }
    return;
  }
}

}  // namespace

ZipReader::ZipReader(const ByteSource& source) : source_(source) {
  const auto directory = find_directory(source);
  SSD_VALIDATE(directory.offset <= directory.end && directory.end - directory.offset == directory.bytes,
               "the zip directory is not where the end record says; the file is cut short or damaged");
  read_directory(directory.count, directory.offset, directory.end);
  check_layout(directory.offset);
}

void ZipReader::read_directory(std::uint64_t count, std::uint64_t offset, std::uint64_t end) {
  const auto bytes = source_.read(offset, end - offset);
  Block rest(bytes);
  while (!rest.empty()) {
    SSD_VALIDATE(rest.size() >= kCentralBytes && u32(rest, 0) == kCentralSignature,
                 "the zip directory is damaged");
    const std::size_t name_bytes = u16(rest, 28), extra_bytes = u16(rest, 30), comment_bytes = u16(rest, 32);
    SSD_VALIDATE(rest.size() - kCentralBytes >= name_bytes + extra_bytes + comment_bytes,
                 "the zip directory is damaged");
    const auto name = text_of(rest.subspan(kCentralBytes, name_bytes));
    SSD_VALIDATE((u16(rest, 8) & kFlagEncrypted) == 0, "zip entry '{}' is encrypted", printable(name));
    SSD_VALIDATE(
        u16(rest, 10) == kMethodStored,
        "zip entry '{}' is compressed (method {}); torch.save does not compress, write it again with it",
        printable(name), u16(rest, 10));
    std::uint64_t stored_bytes = u32(rest, 20);
    Entry entry{u32(rest, 42), 0, u32(rest, 24), u32(rest, 16)};
    apply_zip64(rest.subspan(kCentralBytes + name_bytes, extra_bytes), entry.bytes, stored_bytes,
                entry.header_offset);
    SSD_VALIDATE(entry.bytes == stored_bytes, "zip entry '{}' has the sizes {} and {}", printable(name),
                 entry.bytes, stored_bytes);
    SSD_VALIDATE(entries_.emplace(name, entry).second, "zip entry '{}' is there twice", printable(name));
    rest = rest.subspan(kCentralBytes + name_bytes + extra_bytes + comment_bytes);
  }
  SSD_VALIDATE(entries_.size() == count, "the zip directory has {} entries, its end record says {}",
               entries_.size(), count);
}

// Local headers fit the directory, and entries neither overlap nor reach into the directory.
void ZipReader::check_layout(std::uint64_t directory_offset) {
  std::vector<std::pair<std::string_view, Entry*>> by_offset;
  for (auto& [name, entry] : entries_) by_offset.emplace_back(name, &entry);
  std::ranges::sort(by_offset, {}, [](const auto& item) { return item.second->header_offset; });
  std::uint64_t previous_end = 0;
  for (const auto& [name, entry] : by_offset) {
    const auto offset = entry->header_offset;
    SSD_VALIDATE(offset >= previous_end && offset <= directory_offset &&
                     directory_offset - offset >= kLocalBytes + name.size(),
                 "zip entry '{}' at {} overlaps another or lies beyond the directory", printable(name),
                 offset);
    const auto header = source_.read(offset, kLocalBytes + name.size());
    SSD_VALIDATE(u32(header, 0) == kLocalSignature && u16(header, 8) == kMethodStored &&
                     u16(header, 26) == name.size() && text_of(Block(header).subspan(kLocalBytes)) == name,
                 "the local header of zip entry '{}' is damaged", printable(name));
    entry->data_offset = offset + header.size() + u16(header, 28);
    SSD_VALIDATE(
        entry->data_offset <= directory_offset && directory_offset - entry->data_offset >= entry->bytes,
        "zip entry '{}' of {} bytes reaches beyond the directory", printable(name), entry->bytes);
    previous_end = entry->data_offset + entry->bytes;
  }
}

const ZipReader::Entry* ZipReader::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<std::byte> ZipReader::read(std::string_view name) const {
  const auto* entry = find(name);
  SSD_VALIDATE(entry != nullptr, "entry '{}' is missing from the zip archive", printable(name));
  auto bytes = source_.read(entry->data_offset, entry->bytes);
  const auto found = ssd::crc32(bytes);
  SSD_VALIDATE(found == entry->crc32, "zip entry '{}' is damaged: CRC-32 {:08x}, {:08x} expected",
               printable(name), found, entry->crc32);
  return bytes;
}

}  // namespace ssd
