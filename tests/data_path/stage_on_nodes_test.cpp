// On several ranks of one node: one copies, all open the copy, all fail together.
#include "data/stage_on_nodes.hpp"

#include <gtest/gtest.h>

#include "comm/agreement.hpp"
#include "record/made_set.hpp"
#include "record/shard_set.hpp"
#include "support/files.hpp"
#include "support/world.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

class StageOnNodesTest : public testing::Test {
 protected:
  // One folder for all ranks, of rank 0.
  void SetUp() override {
    std::string path = temporary.path().string();  // of the same length on all ranks
    world.broadcast_in_place(std::as_writable_bytes(std::span(path)));
    shared = path;
    if (world.is_root()) write_made_set(shared / "source", made_records(6));
    world.barrier();
  }
  void TearDown() override { world.barrier(); }  // before rank 0 removes it

  MpiComm world = test::copy_of_world();
  TemporaryFolder temporary;
  fs::path shared;
};

TEST_F(StageOnNodesTest, all_ranks_get_the_folder_of_the_copy) {
  const auto folder = stage_on_nodes(world, shared / "source", shared / "stage");
  EXPECT_EQ(folder.parent_path(), shared / "stage");
  EXPECT_EQ(ShardSet::open(folder, Split::train).digest(),
            ShardSet::open(shared / "source", Split::train).digest());
}

TEST_F(StageOnNodesTest, all_ranks_fail_where_the_copying_one_does) {
  try {
    stage_on_nodes(world, shared / "source", "/proc/ssd");
    ADD_FAILURE() << "no failure";
  } catch (const AgreedFailure& failure) {
    EXPECT_EQ(failure.exit_code, 1);
  }
}

}  // namespace
}  // namespace ssd
