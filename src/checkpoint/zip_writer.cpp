#include "checkpoint/zip_writer.hpp"

#include "checkpoint/little_endian.hpp"
#include "checkpoint/zip_format.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

using namespace zip;

// Appends the numbers one after the other, each in the bytes of its type.
template <class... Numbers>
void append(std::string& out, Numbers... numbers) {
  (append_little_endian(out, numbers), ...);
}

constexpr std::uint16_t u16(std::uint64_t value) {
  return static_cast<std::uint16_t>(value);
}

constexpr std::uint32_t kNone32 = 0;
constexpr std::uint16_t kNone16 = 0;

// Version, flags, method, time, date, CRC and the two sizes: the same in local and central headers.
void append_common(std::string& out, std::uint32_t crc32) {
  append(out, kVersionZip64, kFlagUtf8, kMethodStored, kNone16, kDate1980, crc32, kSeeZip64_32, kSeeZip64_32);
}

std::string local_header(std::uint64_t position, std::string_view name, std::uint64_t bytes,
                         std::uint32_t crc32) {
  constexpr std::size_t kZip64ExtraBytes = 4 + 16, kPaddingHeaderBytes = 4;
  const auto before_padding = position + kLocalBytes + name.size() + kZip64ExtraBytes + kPaddingHeaderBytes;
  const auto padding = (kAlignment - before_padding % kAlignment) % kAlignment;
  std::string header;
  append(header, kLocalSignature);
  append_common(header, crc32);
  append(header, u16(name.size()), u16(kZip64ExtraBytes + kPaddingHeaderBytes + padding));
  header += name;
  append(header, kExtraZip64, u16(kZip64ExtraBytes - 4), bytes, bytes);
  append(header, kExtraPadding, u16(padding));
  header.append(padding, 'Z');
  return header;
}

}  // namespace

void ZipWriter::add(std::string_view name, std::span<const std::byte> data) {
  SSD_EXPECT(!finished_ && name.size() <= 255 && names_.emplace(name).second);
  const auto checksum = ssd::crc32(data);
  const auto header = local_header(position_, name, data.size(), checksum);
  append_to_directory(name, data.size(), checksum);
  write(header);
  sink_(data);
  position_ += data.size();
}

void ZipWriter::add(std::string_view name, std::string_view text) {
  add(name, std::as_bytes(std::span(text)));
}

void ZipWriter::append_to_directory(std::string_view name, std::uint64_t bytes, std::uint32_t crc32) {
  constexpr std::size_t kZip64ExtraBytes = 4 + 24;
  append(directory_, kCentralSignature, kVersionZip64);
  append_common(directory_, crc32);
  append(directory_, u16(name.size()), u16(kZip64ExtraBytes), kNone16, kNone16, kNone16, kNone32,
         kSeeZip64_32);
  directory_ += name;
  append(directory_, kExtraZip64, u16(kZip64ExtraBytes - 4), bytes, bytes, position_);
  ++count_;
}

void ZipWriter::finish() {
  SSD_EXPECT(!finished_);
  finished_ = true;
  const auto directory_offset = position_;
  const std::uint64_t directory_bytes = directory_.size();
  const auto end_offset = directory_offset + directory_bytes;
  auto& out = directory_;
  append(out, kZip64EndSignature, std::uint64_t{kZip64EndBytes - 12}, kVersionZip64, kVersionZip64, kNone32,
         kNone32, count_, count_, directory_bytes, directory_offset);
  append(out, kZip64LocatorSignature, kNone32, end_offset, std::uint32_t{1});
  append(out, kEndSignature, kNone16, kNone16, kSeeZip64_16, kSeeZip64_16, kSeeZip64_32, kSeeZip64_32,
         kNone16);
  write(out);
}

void ZipWriter::write(std::string_view bytes) {
  sink_(std::as_bytes(std::span(bytes)));
  position_ += bytes.size();
}

}  // namespace ssd
