#include "comm/launch.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace ssd {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::string sign_in(const Variables& variables) {
  return sign_of_others(environment_of(variables)).value_or("none");
}

TEST(SignOfOthers, U4_is_what_any_launcher_of_several_processes_sets) {
  EXPECT_EQ(sign_in({{"PMI_SIZE", "8"}}), "PMI_SIZE=8");
  EXPECT_EQ(sign_in({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "1"}}), "PMI_SIZE=2");
  EXPECT_EQ(sign_in({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "0"}}),
            "OMPI_COMM_WORLD_SIZE=4");
  EXPECT_EQ(sign_in({{"MV2_COMM_WORLD_SIZE", "4"}}), "MV2_COMM_WORLD_SIZE=4");
  EXPECT_EQ(sign_in({{"MPI_LOCALNRANKS", "4"}}), "MPI_LOCALNRANKS=4");
  EXPECT_EQ(sign_in({{"JSM_NAMESPACE_SIZE", "4"}}), "JSM_NAMESPACE_SIZE=4");
  EXPECT_EQ(sign_in({{"LOCAL_WORLD_SIZE", "8"}, {"LOCAL_RANK", "0"}}), "LOCAL_WORLD_SIZE=8");
  EXPECT_EQ(sign_in({{"PMIX_NAMESPACE", "a"}, {"PMIX_RANK", "3"}}), "PMIX_RANK=3");
  EXPECT_EQ(sign_in({{"PALS_RANKID", "1"}}), "PALS_RANKID=1");
  EXPECT_EQ(sign_in({{"ALPS_APP_PE", "1"}}), "ALPS_APP_PE=1");
}

TEST(SignOfOthers, U4_of_slurm_is_a_step_of_several_tasks_and_not_the_batch_script) {
  const Variables batch_script{{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}, {"SLURM_NPROCS", "8"},
                               {"SLURM_PROCID", "0"}, {"SLURM_NNODES", "2"}, {"SLURM_LOCALID", "0"}};
  EXPECT_EQ(sign_in(batch_script), "none");
  auto step = batch_script;
  step["SLURM_STEP_ID"] = "0";
  step["SLURM_STEP_NUM_TASKS"] = "8";
  EXPECT_EQ(sign_in(step), "SLURM_STEP_NUM_TASKS=8");
  step["SLURM_STEP_NUM_TASKS"] = "1";
  EXPECT_EQ(sign_in(step), "none");
}

TEST(SignOfOthers, U4_is_none_for_one_process_whatever_started_its_launcher) {
  EXPECT_EQ(sign_in({}), "none");
  EXPECT_EQ(sign_in({{"PMIX_NAMESPACE", "a"}, {"PMIX_RANK", "0"}}), "none");
  EXPECT_EQ(sign_in({{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}}), "none");
  EXPECT_EQ(sign_in({{"PMI_SIZE", ""}, {"SLURM_STEP_NUM_TASKS", "many"}}), "none");
  // mpirun -np 1 and mpiexec.hydra -n 1, whose daemons srun started on eight nodes.
  EXPECT_EQ(sign_in({{"OMPI_COMM_WORLD_SIZE", "1"},
                     {"OMPI_COMM_WORLD_RANK", "0"},
                     {"PMIX_RANK", "0"},
                     {"SLURM_STEP_NUM_TASKS", "8"},
                     {"SLURM_PROCID", "5"}}),
            "none");
  EXPECT_EQ(sign_in({{"PMI_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "5"}}), "none");
}

TEST(ObjectionToRunningAlone, U4_says_what_it_saw_what_works_and_how_to_run_all_the_same) {
  Variables variables{{"PMI_SIZE", "8"}};
  const auto objection = [&] { return objection_to_running_alone(environment_of(variables)); };
  EXPECT_EQ(objection(),
            "PMI_SIZE=8 says that this process was started as one of several, but MPI sees one rank; start "
            "the ranks with Open MPI's mpirun or with srun --mpi=pmix, or set SSD_ALLOW_SINGLETON=1 where "
            "each process is meant to run alone");
  for (const char* value : {"", "0"}) {
    variables["SSD_ALLOW_SINGLETON"] = value;
    EXPECT_TRUE(objection()) << value;
  }
  variables["SSD_ALLOW_SINGLETON"] = "1";
  EXPECT_EQ(objection(), std::nullopt);
  variables = {};
  EXPECT_EQ(objection(), std::nullopt);
}

}  // namespace
}  // namespace ssd
