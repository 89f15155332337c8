// Checkpoint files as torch.save writes and torch.load reads them; FORMAT.md beside this file says what is in
// them. Local (no communication): reading on every rank is fine, writing is for one rank. Reading never runs
// code from the file and allocates no more than a small multiple of the file's size. Throws Error, one line
// that names the file and what was met in it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "checkpoint/checkpoint_item.hpp"
#include "checkpoint/value.hpp"

namespace ssd {

// Both formats of torch.save, recognised by their first bytes: the zip archive, and the old one without. The
// whole file is read, tensors included. A file that a network file system calls stale is opened again, twice.
CheckpointItem read_checkpoint_file(const std::filesystem::path& path);

// The same from memory; texts of errors do not name a file.
Value read_checkpoint_bytes(std::span<const std::byte> bytes);

// Atomic: under a temporary name, synced, renamed. The file appears whole or not at all, and the same value
// gives the same bytes. Tensors that share a storage share it in the file; a storage is written whole, so
// make views contiguous first (contiguous_bytes) where only a part is meant.
void write_checkpoint_file(const std::filesystem::path& path, const Value& root);

}  // namespace ssd
