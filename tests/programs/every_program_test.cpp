// What every program does before its own work begins.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run_program.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kPhotos = SSD_TEST_DATA "/coco_free";
const std::string kTruth = kPhotos + "/annotations/instances_val2017.json";
const std::string kCheckpoint = SSD_TEST_DATA "/checkpoint/small/tiny_half.pt";

// A command that would write into the folder, for each program.
std::vector<std::string> work_of(const std::string& program, const fs::path& folder) {
  const auto out = [&](const char* name) { return (folder / name).string(); };
  if (program == "ssd_preprocess") return {kPhotos, out("shards")};
  if (program == "ssd_train") return {"--data", kPhotos, "--save", out("models")};
  if (program == "ssd_infer")
    return {"--checkpoint", kCheckpoint, "--draw", out("drawn"), kPhotos + "/val2017"};
  if (program == "ssd_eval") return {kTruth, out("none.json"), "--json", out("scores.json")};
  if (program == "ssd_checkpoint") return {kCheckpoint, "--output", out("w.pt"), "--weights-only"};
  return {"--json", out("bench.json")};  // ssd_comm_bench
}

class EveryProgram : public testing::TestWithParam<const char*> {
 protected:
  ProgramResult run(std::vector<std::string> variables, const std::vector<std::string>& arguments) const {
    variables.insert(variables.begin(), "/usr/bin/env");
    variables.push_back(fmt::format("{}/{}", SSD_BIN_DIR, GetParam()));
    variables.insert(variables.end(), arguments.begin(), arguments.end());
    return run_program(variables);
  }
};

TEST_P(EveryProgram, U4_refuses_to_be_one_of_several_worlds_of_one_before_any_file_is_made) {
  const TemporaryFolder folder;
  for (const char* variable : {"PMI_SIZE=8", "SLURM_STEP_NUM_TASKS=8", "PMIX_RANK=2"}) {
    const auto refused = run({variable}, work_of(GetParam(), folder.path()));
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(fmt::format("error: {} says that this process was started as one of "
                                                   "several, but MPI sees one rank; start the ranks with "
                                                   "Open MPI's mpirun or with srun --mpi=pmix, ",
                                                   variable)));
    EXPECT_EQ(refused.err.find('\n'), refused.err.size() - 1) << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_TRUE(fs::is_empty(folder.path()));
  }
}

TEST_P(EveryProgram, U4_tells_its_options_and_version_however_it_was_started) {
  for (const char* question : {"--help", "--version"}) {
    const auto told = run({"PMI_SIZE=8"}, {question});
    EXPECT_EQ(told.exit_code, 0) << told.err;
    EXPECT_EQ(told.out, run({}, {question}).out);
    EXPECT_NE(told.out, "");
  }
}

TEST_P(EveryProgram, U4_runs_alone_within_a_batch_script_or_where_it_is_told_to) {
  const std::vector<std::string> wrong_use{"--no-such-option"};
  const auto usual = run({}, wrong_use);
  EXPECT_THAT(usual.err, HasSubstr("unrecognised option '--no-such-option'"));
  EXPECT_EQ(run({"SLURM_JOB_ID=7", "SLURM_NTASKS=8", "SLURM_PROCID=0"}, wrong_use).err, usual.err);
  EXPECT_EQ(run({"PMI_SIZE=8", "SSD_ALLOW_SINGLETON=1"}, wrong_use).err, usual.err);
}

INSTANTIATE_TEST_SUITE_P(All, EveryProgram,
                         testing::Values("ssd_preprocess", "ssd_train", "ssd_infer", "ssd_eval",
                                         "ssd_checkpoint", "ssd_comm_bench"),
                         [](const auto& item) { return std::string(item.param); });

}  // namespace
}  // namespace ssd
