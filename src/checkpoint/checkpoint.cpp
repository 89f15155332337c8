#include "checkpoint/checkpoint.hpp"

#include <chrono>
#include <thread>

#include "checkpoint/byte_source.hpp"
#include "checkpoint/foreign_file.hpp"
#include "checkpoint/legacy_reader.hpp"
#include "checkpoint/torch_archive.hpp"
#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

Value read_any(const ByteSource& source) {
  const auto head = source.read(0, std::min<std::uint64_t>(source.size(), kForeignHeadBytes));
  switch (container_of(head)) {
    case Container::zip:
      return read_torch_archive(source);
    case Container::legacy:
      return read_legacy(source);
    case Container::foreign:
      break;
  }
  throw Error(fmt::format("it is {}; a file written by torch.save is expected", describe_foreign_file(head)));
}

CheckpointItem read_once(const std::filesystem::path& path) {
  const FileSource source(path);
  try {
    return {path.string(), read_any(source)};
  } catch (const StaleFileError&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format("checkpoint '{}': {}", path.string(), error.what()));
  }
}

}  // namespace

CheckpointItem read_checkpoint_file(const std::filesystem::path& path) {
  constexpr int kTries = 3;
  for (int attempt = 1;; ++attempt) {
    try {
      return read_once(path);
    } catch (const StaleFileError& error) {
      if (attempt == kTries) throw;
      log_warning("{}; opening it again", error.what());
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }
}

Value read_checkpoint_bytes(std::span<const std::byte> bytes) {
  return read_any(MemorySource(bytes));
}

void write_checkpoint_file(const std::filesystem::path& path, const Value& root) {
  AtomicFile file(path);
  write_torch_archive(root, [&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

}  // namespace ssd
