#include "train/placement_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ssd {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::vector<int> numbers(int first, int last) {
  std::vector<int> all;
  for (int i = first; i <= last; ++i) all.push_back(i);
  return all;
}

// A rank of a node, each of whose CPUs is a core.
PlacementRow row(int rank, int node, int local_rank, const std::string& device, std::vector<int> cpus) {
  PlacementRow made;
  made.rank = rank;
  made.place.local_rank = local_rank;
  made.place.local_size = 8;
  made.place.allowed_cores = static_cast<int>(cpus.size());
  made.place.host = "node" + std::to_string(node + 1);
  made.place.cpus = std::move(cpus);
  made.place.node = 8 * node;
  made.device = device;
  made.loader_threads = 8;
  return made;
}

TEST(PlacementTable, T5_05_has_a_line_for_each_rank_with_its_cpus_and_threads) {
  auto first = row(0, 0, 0, "cuda:0", numbers(0, 15));
  const auto second = row(1, 0, 1, "cuda:1", {16, 17, 18, 40});
  first.place.allowed_cores = 8;  // hyperthreads
  EXPECT_EQ(format_placement(std::vector{first, second}),
            "rank  host   local rank  device  CPUs      cores  compute threads  loader threads\n"
            "   0  node1           0  cuda:0  0-15          8                1               8\n"
            "   1  node1           1  cuda:1  16-18,40      4                1               8");
}

TEST(PlacementTable, has_one_line_for_the_like_ranks_of_a_node_where_ranks_are_more_than_16) {
  std::vector<PlacementRow> rows;
  for (int rank = 0; rank < 24; ++rank) {
    // Dealt to three nodes in turn; the ranks of the third share its CPUs, and one of them loads with fewer
    // threads.
    const int node = rank % 3, local = rank / 3;
    rows.push_back(row(rank, node, local, "cuda:" + std::to_string(local),
                       node == 2 ? numbers(0, 63) : numbers(8 * local, 8 * local + 7)));
  }
  rows[5].loader_threads = 4;
  EXPECT_EQ('\n' + format_placement(rows), R"(
                rank  host   local rank  device      CPUs           cores  compute threads  loader threads
 0,3,6,9,12,15,18,21  node1         0-7  cuda:0-7    0-63 (8 each)      8                1               8
1,4,7,10,13,16,19,22  node2         0-7  cuda:0-7    0-63 (8 each)      8                1               8
  2,8,11,14,17,20,23  node3       0,2-7  cuda:0,2-7  0-63              64                1               8
                   5  node3           1  cuda:1      0-63              64                1               4)");
}

TEST(PlacementTable, keeps_nodes_of_one_name_apart) {
  std::vector<PlacementRow> rows;
  for (int rank = 0; rank < 32; ++rank) {
    rows.push_back(row(rank, rank / 16, rank % 16, "cpu", {rank % 16}));
    rows.back().place.host = "box";
  }
  const auto table = format_placement(rows);
  EXPECT_THAT(table, HasSubstr(" 0-15  box         0-15  cpu     0-15 (1 each)"));
  EXPECT_THAT(table, HasSubstr("16-31  box         0-15  cpu     0-15 (1 each)"));
}

TEST(OverloadWarning, is_empty_where_each_rank_can_have_a_core) {
  EXPECT_THAT(overload_warning({}), IsEmpty());
  EXPECT_THAT(overload_warning(std::vector{row(0, 0, 0, "cpu", {0, 1}), row(1, 0, 1, "cpu", {0, 1})}),
              IsEmpty());
  EXPECT_THAT(overload_warning(std::vector{row(0, 0, 0, "cpu", {0}), row(1, 0, 1, "cpu", {1}),
                                           row(2, 0, 2, "cpu", {0, 1, 2})}),
              IsEmpty());
  // The same CPU of two nodes.
  EXPECT_THAT(overload_warning(std::vector{row(0, 0, 0, "cpu", {0}), row(1, 1, 0, "cpu", {0})}), IsEmpty());
}

TEST(OverloadWarning, names_the_most_crowded_cores_and_says_what_to_do) {
  std::vector<PlacementRow> rows;
  for (int rank = 0; rank < 8; ++rank) rows.push_back(row(rank, 0, rank, "cpu", {0, 1}));
  EXPECT_EQ(overload_warning(rows),
            "8 ranks share 2 cores of node1 (CPUs 0-1) and wait for one another; start fewer there, or, "
            "where mpirun bound them "
            "to these, let them use the others: --bind-to none, or --map-by core --bind-to core");
  // Two more are bound to one core each, of which all can use the first.
  rows.push_back(row(8, 1, 0, "cpu", {5}));
  for (int rank = 9; rank < 14; ++rank) rows.push_back(row(rank, 1, rank - 8, "cpu", {5}));
  EXPECT_THAT(overload_warning(rows), testing::StartsWith("6 ranks share 1 core of node2 (CPUs 5) and wait"));
}

TEST(OverloadWarning, counts_two_hyperthreads_as_one_core) {
  std::vector<PlacementRow> rows{row(0, 0, 0, "cpu", {0, 4}), row(1, 0, 1, "cpu", {0, 4})};
  for (auto& made : rows) made.place.allowed_cores = 1;
  EXPECT_THAT(overload_warning(rows), testing::StartsWith("2 ranks share 1 core of node1 (CPUs 0,4)"));
}

TEST(OverloadWarning, counts_ranks_that_are_bound_to_some_of_the_cores) {
  const std::vector rows{row(0, 0, 0, "cpu", {0}), row(1, 0, 1, "cpu", {1}), row(2, 0, 2, "cpu", {0, 1})};
  EXPECT_THAT(overload_warning(rows), testing::StartsWith("3 ranks share 2 cores of node1 (CPUs 0-1)"));
}

TEST(PlacementJson, has_an_object_for_each_rank) {
  const auto json =
      placement_json(std::vector{row(0, 0, 0, "cuda:0", numbers(0, 15)), row(1, 0, 1, "cuda:1", {16, 18})});
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[1].dump(),
            R"({"rank":1,"host":"node1","local_rank":1,"device":"cuda:1","cpus":"16,18","cores":2,)"
            R"("compute_threads":1,"loader_threads":8})");
}

TEST(GatherPlacement, of_a_world_of_one_gives_the_row_back) {
  const auto own = row(0, 0, 0, "cuda:0", {0, 1, 2, 9});
  const auto rows = gather_placement(MpiComm(), own);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(format_placement(rows), format_placement(std::vector{own}));
  EXPECT_EQ(rows[0].place.cpus, own.place.cpus);
  EXPECT_EQ(rows[0].place.node, own.place.node);
}

}  // namespace
}  // namespace ssd
