#include "comm/placement.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

TEST(CountCores, counts_hyperthreads_of_a_core_once) {
  const TemporaryFolder sysfs;
  const auto siblings = [&](int cpu, const std::string& list) {
    write_text(sysfs.path() / ("cpu" + std::to_string(cpu)) / "topology/thread_siblings_list", list + "\n");
  };
  siblings(0, "0,4");
  siblings(1, "1,5");
  siblings(4, "0,4");
  siblings(5, "1,5");
  siblings(6, "6-7");
  siblings(7, "6-7");
  EXPECT_EQ(count_cores({0, 1, 4, 5, 6, 7}, sysfs.path()), 3);
  EXPECT_EQ(count_cores({0, 1}, sysfs.path()), 2);
  EXPECT_EQ(count_cores({0, 4}, sysfs.path()), 1);
  EXPECT_EQ(count_cores({5}, sysfs.path()), 1);  // half a core
}

TEST(CountCores, takes_every_cpu_for_a_core_where_the_system_does_not_say) {
  const TemporaryFolder sysfs;
  EXPECT_EQ(count_cores({0, 1, 8}, sysfs.path()), 3);
  write_text(sysfs.path() / "cpu1/topology/thread_siblings_list", "");
  EXPECT_EQ(count_cores({0, 1, 8}, sysfs.path()), 3);
}

TEST(FindPlacement, of_a_world_of_one_has_all_that_this_process_may_run_on) {
  const auto placement = find_placement(MpiComm());
  EXPECT_EQ(placement.local_rank, 0);
  EXPECT_EQ(placement.local_size, 1);
  EXPECT_EQ(placement.node, 0);
  EXPECT_GE(placement.cores, 1);
  EXPECT_EQ(placement.cores, placement.allowed_cores);
  EXPECT_EQ(placement.allowed_cores, count_cores(placement.cpus));
}

TEST(FormatRanges, joins_neighbours_in_any_order) {
  EXPECT_EQ(format_ranges({}), "");
  EXPECT_EQ(format_ranges({7}), "7");
  EXPECT_EQ(format_ranges({0, 1}), "0-1");
  EXPECT_EQ(format_ranges({8, 3, 2, 1, 0, 2}), "0-3,8");
  EXPECT_EQ(format_ranges({0, 2, 4, 5, 6, 9}), "0,2,4-6,9");
}

TEST(ChooseGpu, T5_04_is_the_local_rank_or_the_only_one_and_an_error_where_ranks_are_more) {
  RankPlacement third;
  third.local_rank = 3;
  third.local_size = 4;
  third.host = "node1";
  EXPECT_EQ(choose_gpu(third, 8), 3);
  EXPECT_EQ(choose_gpu(third, 4), 3);
  EXPECT_EQ(choose_gpu(third, 1), 0);
  EXPECT_EQ(
      message_of<Error>([&] { choose_gpu(third, 2); }),
      "4 ranks run on node1, but 2 GPUs are visible there; start one rank for each GPU, or use --device cpu");
}

std::string gpu_error(std::vector<RankGpu> by_rank) {
  return message_of<Error>([&] { expect_one_gpu_each(by_rank); });
}

TEST(ExpectOneGpuEach, T5_04_names_ranks_that_have_the_same_gpu) {
  const std::string none = "(nothing was thrown)";
  EXPECT_EQ(gpu_error({{"a", 0, "0000:1b:00.0"}, {"a", 0, "0000:43:00.0"}, {"b", 2, "0000:1b:00.0"}}), none);
  EXPECT_EQ(gpu_error({{"a", 0, ""}, {"a", 0, ""}}), none);
  // Two containers of one host name.
  EXPECT_EQ(gpu_error({{"box", 0, "0000:1b:00.0"}, {"box", 1, "0000:1b:00.0"}}), none);
  EXPECT_EQ(
      gpu_error({{"a", 0, "0000:43:00.0"}, {"a", 0, "0000:1b:00.0"}, {"a", 0, "0000:1b:00.0"}}),
      "ranks 1 and 2 have the same GPU, 0000:1b:00.0 of a; start one rank for each GPU, or use --device cpu");
}

TEST(ExpectOneGpuEach, names_a_rank_without_one_where_others_have_one) {
  EXPECT_EQ(gpu_error({{"a", 0, "0000:1b:00.0"}, {"b", 1, ""}}),
            "rank 0 on a sees a GPU and rank 1 on b sees none; use nodes with GPUs alone, or --device cpu");
}

TEST(DeviceChoiceTest, has_three_names) {
  EXPECT_EQ(device_choice_from_name("auto"), DeviceChoice::automatic);
  EXPECT_EQ(device_choice_from_name("cuda"), DeviceChoice::cuda);
  EXPECT_EQ(device_choice_from_name("cpu"), DeviceChoice::cpu);
  EXPECT_EQ(message_of<UsageError>([] { device_choice_from_name("gpu"); }),
            "--device 'gpu': not one of auto, cuda, cpu");
}

}  // namespace
}  // namespace ssd
