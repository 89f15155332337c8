// The shard reader under libFuzzer: built by Clang with -DSSD_FUZZ=ON, run as shard_fuzzer FOLDER
// -max_total_time=600. The first byte chooses: the input as a file, or as changes of a good shard's metadata,
// which no digest protects then: what validate() lets through must be safe to use.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/error.hpp"
#include "record/listed_shard.hpp"
#include "record/made_set.hpp"
#include "record/shard_file.hpp"

namespace ssd {
namespace {

// Uses every row as ShardSet does.
void use(const ShardOnDisk& shard, const ShardBytes* bytes) {
  const auto& data = shard.data;
  std::vector<std::byte> picture;
  std::size_t sum = 0;
  for (const auto& category : categories_of(data)) sum += category.name.size();
  for (std::size_t i = 0; i < data.image_ids.size(); ++i) {
    sum += data.file_names.at(i).size() + static_cast<std::size_t>(data.widths[i] + data.heights[i]);
    for (auto k = data.first_annotations[i]; k < data.first_annotations[i + 1]; ++k)
      sum += data.annotation_flags[k] + static_cast<std::size_t>(data.bboxes_xywh[k][3] > data.areas[k]);
    for (auto k = data.first_restarts[i]; k < data.first_restarts[i + 1]; ++k) {
      if (data.restart_offsets[k] >= data.jpeg_bytes[i])
        throw std::logic_error("a segment outside its picture");
    }
    if (bytes != nullptr) is_picture_whole(shard, i, *bytes, picture);
  }
  volatile std::size_t sink = sum;
  static_cast<void>(sink);
}

// A file in memory with a path.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(::memfd_create("shard", 0)) {
    if (descriptor_ < 0 || ::write(descriptor_, data, size) != static_cast<ssize_t>(size))
      throw std::runtime_error("no memory file");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::filesystem::path path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

void read_as_file(const std::uint8_t* data, std::size_t size) {
  const MemoryFile file(data, size);
  try {
    const auto shard = read_shard(file.path());
    const ShardBytes bytes(file.path());
    use(shard, &bytes);
  } catch (const Error&) {
  }
}

ShardData good_data() {
  const std::filesystem::path path = fmt::format("/tmp/shard_fuzzer.{}", ::getpid());
  ShardWriter writer({Split::train, 0, 1, std::string(32, 'a'), "{}"}, made_categories());
  for (const auto& made : made_records(5)) writer.add(made.record, made.jpeg);
  writer.close(path);
  auto data = read_shard(path).data;
  std::filesystem::remove(path);
  return data;
}

// Six bytes a change: dataset, row (2), what to do, value (2).
void change_metadata(const std::uint8_t* changes, std::size_t size) {
  static const ShardData kGood = good_data();
  ShardOnDisk shard{{}, kGood, 0, 0, {}};
  for (; size >= 6; changes += 6, size -= 6) {
    const std::size_t row = changes[1] | changes[2] << 8;
    const std::size_t value = changes[4] | changes[5] << 8;
    std::size_t dataset = 0;
    visit_datasets(shard.data, [&](const char*, auto& rows) {
      if (dataset++ != changes[0] % 30U) return;
      if (changes[3] % 4 == 0) {
        rows.resize(value % 64);
      } else if (!rows.empty()) {
        auto* bytes = reinterpret_cast<unsigned char*>(rows.data());
        const auto count = rows.size() * sizeof(rows[0]);
        bytes[row % count] = static_cast<unsigned char>(value);
      }
    });
  }
  try {
    validate(shard.data, 4000);
  } catch (const Error&) {
    return;
  }
  use(shard, nullptr);
}

}  // namespace
}  // namespace ssd

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  if (data[0] % 2 == 0) {
    ssd::read_as_file(data + 1, size - 1);
  } else {
    ssd::change_metadata(data + 1, size - 1);
  }
  return 0;
}
