// Checksums: CRC-32 (IEEE 802.3; by ISA-L, at twenty times zlib's speed) for records and zip entries, XXH3 of
// 128 bits (xxHash) for whole files and sets. They find damage, not forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

struct XXH3_state_s;

namespace ssd {

// CRC-32 of the bytes, going on from an earlier value (0 at the start).
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t start = 0);

struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
  std::string hex() const;  // 32 lower-case digits
};

// XXH3-128 over pieces.
class Digester {
 public:
  Digester();
  ~Digester();
  Digester(const Digester&) = delete;
  Digester& operator=(const Digester&) = delete;

  void update(std::span<const std::byte> bytes);
  Digest digest() const;

 private:
  XXH3_state_s* state_;
};

Digest digest_of(std::span<const std::byte> bytes);

}  // namespace ssd
