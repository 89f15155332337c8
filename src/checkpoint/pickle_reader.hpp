// Reads one pickle of a checkpoint file into a Value. No code is run: opcodes and globals are a closed list,
// anything else is refused with the name of what was met. Memory is bounded by a small multiple of the
// pickle's size, nesting by kMaxDepth. Throws Error; the text does not name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/tensor.hpp"
#include "checkpoint/value.hpp"

namespace ssd {

// A storage that the pickle names; its bytes lie elsewhere in the file. The tensors share `storage`, which
// has no bytes until whoever read the pickle has filled it. Tensors are known to lie within `elements`.
struct NamedStorage {
  std::string key;
  DType dtype = DType::float32;
  std::uint64_t elements = 0;
  std::shared_ptr<Storage> storage;

  std::uint64_t bytes() const { return elements * element_bytes(dtype); }  // does not overflow
};

struct Pickle {
  Value root;
  std::vector<NamedStorage> storages;  // in the order of first mention, each key once
  std::size_t consumed = 0;            // bytes up to and with STOP
};

Pickle read_pickle(std::span<const std::byte> bytes);

}  // namespace ssd
