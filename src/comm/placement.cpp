#include "comm/placement.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "comm/agreement.hpp"
#include "comm/gather_texts.hpp"
#include "comm/gpu.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

cpu_set_t allowed_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) == 0) CPU_SET(0, &cpus);
  return cpus;
}

// The CPUs that any rank of the node may run on.
cpu_set_t union_over(const MpiComm& node, cpu_set_t own) {
  const auto all = node.gather(std::as_bytes(std::span(&own, 1)));
  for (const auto& bytes : all) {
    cpu_set_t other;
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&other));
    CPU_OR(&own, &own, &other);
  }
  node.broadcast_in_place(std::as_writable_bytes(std::span(&own, 1)));
  return own;
}

std::vector<int> numbers_in(const cpu_set_t& cpus) {
  std::vector<int> numbers;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) numbers.push_back(cpu);
  }
  return numbers;
}

}  // namespace

DeviceChoice device_choice_from_name(const std::string& name) {
  if (name == "auto") return DeviceChoice::automatic;
  if (name == "cuda") return DeviceChoice::cuda;
  if (name == "cpu") return DeviceChoice::cpu;
  throw UsageError(fmt::format("--device '{}': not one of auto, cuda, cpu", name));
}

RankPlacement find_placement(const MpiComm& world) {
  const auto node = world.split_by_node();
  const auto own = allowed_cpus();
  const auto all = union_over(node, own);
  RankPlacement placement;
  placement.local_rank = node.rank();
  placement.local_size = node.world_size();
  placement.node = static_cast<int>(node.reduce_all(std::int64_t{world.rank()}, ReduceOperation::min));
  placement.cpus = numbers_in(own);
  placement.allowed_cores = count_cores(placement.cpus);
  placement.cores =
      std::max(1, std::min(placement.allowed_cores, count_cores(numbers_in(all)) / node.world_size()));
  placement.host = log_identity().host;
  return placement;
}

int count_cores(const std::vector<int>& cpus, const std::filesystem::path& sysfs) {
  std::set<int> cores;  // each by its lowest CPU
  for (const int cpu : cpus) {
    // The CPUs of its core, ascending: "3,67" or "6-7".
    std::ifstream siblings(sysfs / fmt::format("cpu{}/topology/thread_siblings_list", cpu));
    int lowest = cpu;
    if (!(siblings >> lowest)) lowest = cpu;
    cores.insert(lowest);
  }
  return static_cast<int>(cores.size());
}

int choose_gpu(const RankPlacement& placement, int visible_gpus) {
  if (visible_gpus == 1) return 0;
  SSD_VALIDATE(
      visible_gpus >= placement.local_size,
      "{} ranks run on {}, but {} GPUs are visible there; start one rank for each GPU, or use --device cpu",
      placement.local_size, placement.host, visible_gpus);
  return placement.local_rank;
}

void expect_one_gpu_each(std::span<const RankGpu> by_rank) {
  const auto has_none = [](const RankGpu& gpu) { return gpu.uuid.empty(); };
  const auto without = std::find_if(by_rank.begin(), by_rank.end(), has_none);
  const auto with = std::find_if_not(by_rank.begin(), by_rank.end(), has_none);
  if (with == by_rank.end()) return;
  SSD_VALIDATE(
      without == by_rank.end(),
      "rank {} on {} sees a GPU and rank {} on {} sees none; use nodes with GPUs alone, or --device cpu",
      with - by_rank.begin(), with->host, without - by_rank.begin(), without->host);
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (std::size_t other = 0; other < rank; ++other) {
      const auto &gpu = by_rank[rank], &before = by_rank[other];
      SSD_VALIDATE(
          gpu.node != before.node || gpu.uuid != before.uuid,
          "ranks {} and {} have the same GPU, {} of {}; start one rank for each GPU, or use --device cpu",
          other, rank, gpu.uuid, gpu.host);
    }
  }
}

void agree_on_one_gpu_each(const MpiComm& world, const RankPlacement& placement, int gpu_index) {
  std::string uuid;
  run_in_agreement(world, [&] {
    if (gpu_index >= 0) uuid = gpu_uuid(gpu_index);
  });
  const auto text = fmt::format("{}\n{}\n{}", placement.node, uuid, placement.host);
  const auto texts = gather_texts(world, text);
  run_in_agreement(world, [&] {
    std::vector<RankGpu> by_rank;  // on rank 0 alone
    for (const auto& rank : texts) {
      std::istringstream lines(rank);
      RankGpu gpu;
      std::string node;
      std::getline(lines, node);
      std::getline(lines, gpu.uuid);
      std::getline(lines, gpu.host);
      gpu.node = std::stoi(node);
      by_rank.push_back(std::move(gpu));
    }
    expect_one_gpu_each(by_rank);
  });
}

std::string format_ranges(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  for (std::size_t first = 0, next = 0; first < numbers.size(); first = next) {
    for (next = first + 1; next < numbers.size() && numbers[next] == numbers[next - 1] + 1;) ++next;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[first]);
    if (next > first + 1) text += fmt::format("-{}", numbers[next - 1]);
  }
  return text;
}

}  // namespace ssd
