#include "core/digest.hpp"

#include <fmt/format.h>
#include <isa-l/crc.h>
#include <xxhash.h>

#include <new>

namespace ssd {

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t start) {
  return ::crc32_gzip_refl(start, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::string Digest::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

Digester::Digester() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_);
}

Digester::~Digester() {
  XXH3_freeState(state_);
}

void Digester::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_, bytes.data(), bytes.size());
}

Digest Digester::digest() const {
  const auto hash = XXH3_128bits_digest(state_);
  return {hash.high64, hash.low64};
}

Digest digest_of(std::span<const std::byte> bytes) {
  const auto hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

}  // namespace ssd
