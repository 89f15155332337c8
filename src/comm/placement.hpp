// Where a rank runs: its place on the node, the CPUs it may run on and the cores that are its share of them,
// its GPU.
//
// Note [Cores and hyperthreads]
// A CPU is what the kernel calls one: a hyperthread. A core counts once, however many of its hyperthreads a
// rank may run on: LibTorch's kernels are bound by the vector and matrix units, which the hyperthreads of a
// core share, and wait for their slowest thread at barriers. So threads are planned by cores.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "comm/mpi_comm.hpp"

namespace ssd {

// As the user asks for it; automatic is CUDA where a GPU is visible.
enum class DeviceChoice { automatic, cuda, cpu };

// auto, cuda or cpu; throws UsageError, of --device.
DeviceChoice device_choice_from_name(const std::string& name);

struct RankPlacement {
  int local_rank = 0;
  int local_size = 1;     // ranks on this node
  int cores = 1;          // this rank's share of the cores that it and its neighbours may run on, at least 1
  int allowed_cores = 1;  // cores that this rank may run on
  std::string host;
  std::vector<int> cpus = {};  // that this rank may run on, ascending
  int node = 0;                // the lowest rank on it: nodes of one host name (containers) differ in this
};

// Collective. The share is right whether the launcher bound each rank to cores of its own or none at all:
// ranks and cores come from MPI and the binding, never from SLURM_* (under mpirun these are the launcher's).
RankPlacement find_placement(const MpiComm& world);

// Cores that these CPUs belong to, by what sysfs says of each; a CPU of which it says nothing is a core.
// Local.
int count_cores(const std::vector<int>& cpus, const std::filesystem::path& sysfs = "/sys/devices/system/cpu");

// Which of the visible GPUs is this rank's: its local rank, or the only one, since srun may show each rank
// its own alone. Throws Error where there are fewer than ranks. Pure.
int choose_gpu(const RankPlacement& placement, int visible_gpus);

// What a rank computes on.
struct RankGpu {
  std::string host;
  int node = 0;        // as in RankPlacement
  std::string pci_id;  // empty: the CPU
};

// Throws Error where two ranks share a GPU, or some ranks have one and some have none. Pure.
void expect_one_gpu_each(std::span<const RankGpu> by_rank);

// Collective: the same over all ranks; gpu_index: this rank's, -1: the CPU. Before NCCL starts, which would
// fail or hang with less of a reason. Throws AgreedFailure.
void agree_on_one_gpu_each(const MpiComm& world, const RankPlacement& placement, int gpu_index);

// "0-3,8": the numbers as ranges, whatever their order.
std::string format_ranges(std::vector<int> numbers);

}  // namespace ssd
