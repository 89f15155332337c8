#include "comm/comm_benchmark.hpp"

#include <algorithm>
#include <chrono>

#include "comm/known_values.hpp"

namespace ssd {
namespace {

constexpr std::size_t kPartAlignmentBytes = 64;

std::size_t bytes_of(const AveragePart& part) {
  return part.count * wire_type_bytes(part.type);
}

// Where a part ends in the buffer and the next may begin.
std::size_t end_of(std::size_t offset, const AveragePart& part) {
  return (offset + bytes_of(part) + kPartAlignmentBytes - 1) / kPartAlignmentBytes * kPartAlignmentBytes;
}

void start_averages(GradientCommunicator& communicator, CommBuffer& buffer, const BenchmarkCase& what) {
  std::size_t offset = 0;
  for (const auto& part : what.parts) {
    communicator.start_average(buffer.data() + offset, part.count, part.type);
    offset = end_of(offset, part);
  }
  communicator.finish();
}

// Calls action(offset, bytes) for the pieces of a part, of piece_bytes but for the last.
template <class Action>
void for_pieces(std::size_t offset, const AveragePart& part, std::size_t piece_bytes, Action&& action) {
  const auto end = offset + bytes_of(part);
  for (; offset < end; offset += piece_bytes) action(offset, std::min(piece_bytes, end - offset));
}

}  // namespace

std::size_t BenchmarkCase::count() const {
  std::size_t count = 0;
  for (const auto& part : parts) count += part.count;
  return count;
}

std::size_t BenchmarkCase::bytes() const {
  std::size_t bytes = 0;
  for (const auto& part : parts) bytes += bytes_of(part);
  return bytes;
}

std::size_t BenchmarkCase::buffer_bytes() const {
  std::size_t offset = 0;
  for (const auto& part : parts) offset = end_of(offset, part);
  return offset;
}

std::string BenchmarkCase::type_name() const {
  std::string name;
  for (const auto& part : parts) {
    const std::string type = wire_type_name(part.type);
    if (name.find(type) == std::string::npos) name += (name.empty() ? "" : "+") + type;
  }
  return name;
}

std::vector<std::size_t> doubled_sizes(std::size_t least, std::size_t most) {
  std::vector<std::size_t> sizes;
  for (auto size = least; size <= most; size *= 2) sizes.push_back(size);
  return sizes;
}

double algorithm_bandwidth(std::size_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds * 1e-9 : 0;  // 0: below the clock's resolution
}

double bus_bandwidth(double algorithm_bandwidth, int world_size) {
  return algorithm_bandwidth * 2 * (world_size - 1) / world_size;
}

std::size_t count_wrong_averages(GradientCommunicator& communicator, CommBuffer& buffer,
                                 const BenchmarkCase& what, int rank, int world_size) {
  std::size_t offset = 0, wrong = 0;
  for (const auto& part : what.parts) {
    const KnownValues values(part.type, rank, world_size, communicator.prescale());
    for_pieces(offset, part, values.own().size(),
               [&](std::size_t at, std::size_t bytes) { buffer.write(at, values.own().first(bytes)); });
    offset = end_of(offset, part);
  }
  start_averages(communicator, buffer, what);
  buffer.wait();
  offset = 0;
  for (const auto& part : what.parts) {
    const KnownValues values(part.type, rank, world_size, communicator.prescale());
    std::vector<std::byte> piece(values.own().size());
    for_pieces(offset, part, piece.size(), [&](std::size_t at, std::size_t bytes) {
      const auto averages = std::span(piece).first(bytes);
      buffer.read(at, averages);
      wrong += values.count_wrong(averages);
    });
    offset = end_of(offset, part);
  }
  return wrong;
}

BenchmarkResult measure(const MpiComm& world, GradientCommunicator& communicator, CommBuffer& buffer,
                        const BenchmarkCase& what, const BenchmarkOptions& options) {
  BenchmarkResult result;
  const auto wrong = count_wrong_averages(communicator, buffer, what, world.rank(), world.world_size());
  result.wrong_values =
      static_cast<std::size_t>(world.reduce_all(static_cast<std::int64_t>(wrong), ReduceOperation::sum));
  buffer.clear(what.buffer_bytes());
  for (int i = 0; i < options.warmup; ++i) start_averages(communicator, buffer, what);
  buffer.wait();
  world.barrier();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < options.iterations; ++i) start_averages(communicator, buffer, what);
  buffer.wait();
  const auto elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.seconds = world.reduce_all(elapsed / options.iterations, ReduceOperation::max);
  return result;
}

}  // namespace ssd
