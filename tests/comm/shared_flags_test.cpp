#include "comm/shared_flags.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <thread>

#include "core/random.hpp"
#include "support/world.hpp"

namespace ssd {
namespace {

class SharedFlagsTest : public testing::Test {
 protected:
  MpiComm world = test::copy_of_world();
};

TEST_F(SharedFlagsTest, a_flag_of_one_rank_reaches_all_one_exchange_later) {
  SharedFlags flags(world);
  for (int raiser = 0; raiser < world.world_size(); ++raiser) {
    EXPECT_EQ(flags.exchange(world.rank() == raiser ? 4U : 0U), 0U);
    EXPECT_EQ(flags.exchange(0), 4U);
    EXPECT_EQ(flags.exchange(0), 0U);
  }
}

TEST_F(SharedFlagsTest, flags_of_several_ranks_are_joined) {
  SharedFlags flags(world);
  flags.exchange(1U << world.rank());
  EXPECT_EQ(flags.exchange(0), (1U << world.world_size()) - 1);
  EXPECT_EQ(flags.exchange(0), 0U);
}

TEST_F(SharedFlagsTest, the_flag_of_a_rank_that_comes_late_is_waited_for) {
  SharedFlags flags(world);
  const bool is_late = world.rank() == world.world_size() - 1;
  world.barrier();
  if (is_late) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(flags.exchange(is_late ? 2U : 0U), 0U);
  EXPECT_EQ(flags.exchange(0), 2U);
}

TEST_F(SharedFlagsTest, every_exchange_gives_what_all_ranks_passed_at_the_one_before) {
  SharedFlags flags(world);
  std::uint32_t before = 0;
  for (std::uint32_t step = 0; step < 200; ++step) {
    std::uint32_t own = 0, all = 0;
    for (int rank = 0; rank < world.world_size(); ++rank) {
      RandomStream random(1, RandomPurpose::test, step, static_cast<std::uint64_t>(rank));
      const auto flag = random.below(3) == 0 ? 1U << random.below(3) : 0U;
      all |= flag;
      if (rank == world.rank()) own = flag;
    }
    ASSERT_EQ(flags.exchange(own), before) << step;
    before = all;
  }
}

TEST_F(SharedFlagsTest, several_and_messages_of_the_world_do_not_meet) {
  SharedFlags stop(world), save(world);
  stop.exchange(1);
  save.exchange(2);
  EXPECT_EQ(world.reduce_all(std::int64_t{1}, ReduceOperation::sum), world.world_size());
  EXPECT_EQ(stop.exchange(0), 1U);
  EXPECT_EQ(save.exchange(0), 2U);
}

TEST(SharedFlagsOfOne, come_back_at_once) {
  SharedFlags flags{MpiComm()};
  EXPECT_EQ(flags.exchange(5), 5U);
  EXPECT_EQ(flags.exchange(0), 0U);
}

}  // namespace
}  // namespace ssd
