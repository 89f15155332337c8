#include "comm/launch.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

namespace ssd {
namespace {

constexpr const char* kOverride = "SSD_ALLOW_SINGLETON";

struct Launcher {
  const char* size;  // variable with the number of processes, null: it sets none
  const char* rank;  // variable with the place of this one, from 0
};

// Launchers inside others come first: mpirun starts its ranks through srun, whose variables then are those of
// its own daemons. Of the batch script itself Slurm sets SLURM_NTASKS, but no SLURM_STEP_NUM_TASKS.
constexpr std::array kLaunchers{
    Launcher{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},  // Open MPI
    Launcher{"PMI_SIZE", "PMI_RANK"},                        // Hydra of MPICH and Intel MPI, pmi2, Flux, PALS
    Launcher{"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},  // MVAPICH
    Launcher{"MPI_LOCALNRANKS", "MPI_LOCALRANKID"},          // Hydra: on this node
    Launcher{"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},    // jsrun
    Launcher{nullptr, "PALS_RANKID"},                        // Cray
    Launcher{nullptr, "ALPS_APP_PE"},                        // Cray aprun
    Launcher{"LOCAL_WORLD_SIZE", "LOCAL_RANK"},              // torchrun: on this node
    Launcher{nullptr, "PMIX_RANK"},                          // PMIx of any launcher
    Launcher{"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};       // srun

std::optional<long long> count_of(const Environment& environment, const char* name) {
  const char* text = name == nullptr ? nullptr : environment(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view word = text;
  long long value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> sign_of_others(const Environment& environment) {
  for (const auto& launcher : kLaunchers) {
    const auto size = count_of(environment, launcher.size);
    if (size && *size > 1) return fmt::format("{}={}", launcher.size, *size);
    const auto rank = count_of(environment, launcher.rank);
    if (rank && *rank > 0) return fmt::format("{}={}", launcher.rank, *rank);
    if (size) return std::nullopt;  // started alone, whatever started the launcher
  }
  return std::nullopt;
}

std::optional<std::string> objection_to_running_alone(const Environment& environment) {
  const auto sign = sign_of_others(environment);
  const char* allowed = environment(kOverride);
  if (!sign || (allowed != nullptr && std::string_view(allowed) == "1")) return std::nullopt;
  return fmt::format(
      "{} says that this process was started as one of several, but MPI sees one rank; start the ranks with "
      "Open MPI's mpirun or with srun --mpi=pmix, or set {}=1 where each process is meant to run alone",
      *sign, kOverride);
}

}  // namespace ssd
