#include "comm/mpi_comm.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include "comm/agreement.hpp"
#include "core/error.hpp"
#include "support/world.hpp"

namespace ssd {
namespace {

class MpiCommTest : public testing::Test {
 protected:
  MpiCommTest() { comm = test::copy_of_world(); }
  MpiComm comm;
};

TEST_F(MpiCommTest, reduces_over_all_ranks) {
  const int n = comm.world_size();
  EXPECT_EQ(comm.reduce_all(std::int64_t{comm.rank() + 1}, ReduceOperation::sum), n * (n + 1) / 2);
  EXPECT_EQ(comm.reduce_all(std::int64_t{comm.rank()}, ReduceOperation::max), n - 1);
  EXPECT_EQ(comm.reduce_all(.5 + comm.rank(), ReduceOperation::min), .5);
}

TEST_F(MpiCommTest, broadcasts_the_roots_bytes) {
  std::string text(100003, comm.is_root() ? 'x' : ' ');
  comm.broadcast_in_place(std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, std::string(100003, 'x'));
}

TEST_F(MpiCommTest, gathers_different_lengths_in_rank_order) {
  const std::vector<std::byte> mine(static_cast<std::size_t>(comm.rank()) * 1000, std::byte(comm.rank()));
  const auto all = comm.gather(mine);
  ASSERT_EQ(all.size(), comm.is_root() ? static_cast<std::size_t>(comm.world_size()) : 0U);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    EXPECT_EQ(all[rank], std::vector<std::byte>(rank * 1000, std::byte(rank)));
  }
}

TEST_F(MpiCommTest, all_ranks_of_one_machine_are_one_node) {
  const auto node = comm.split_by_node();
  EXPECT_EQ(node.world_size(), comm.world_size());
  EXPECT_EQ(node.rank(), comm.rank());
}

TEST_F(MpiCommTest, an_error_of_mpi_is_thrown_and_does_not_abort) {
  std::byte byte{};
  EXPECT_THROW(comm.broadcast_in_place(std::span(&byte, 1), /*root=*/999), LibraryError);
}

TEST_F(MpiCommTest, a_failure_on_one_rank_is_agreed_on_by_all_with_its_exit_code) {
  const int failing = comm.world_size() - 1;
  try {
    run_in_agreement(comm, [&] {
      if (comm.rank() == failing) throw UsageError("this line belongs to the test");
    });
    FAIL() << "no failure on rank " << comm.rank();
  } catch (const AgreedFailure& failure) {
    EXPECT_EQ(failure.exit_code, 2);
  }
  EXPECT_NO_THROW(run_in_agreement(comm, [] {}));
}

TEST(WorldOfOne, works_without_mpi_calls) {
  const MpiComm alone;
  EXPECT_EQ(alone.world_size(), 1);
  EXPECT_EQ(alone.reduce_all(std::int64_t{7}, ReduceOperation::sum), 7);
  EXPECT_EQ(alone.gather(std::vector<std::byte>(3)).at(0).size(), 3U);
  EXPECT_EQ(alone.split_by_node().world_size(), 1);
}

}  // namespace
}  // namespace ssd
