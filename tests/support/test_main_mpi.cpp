// The main of tests that run under mpirun: every rank runs every test, rank 0 prints, a failure on any rank
// is a failure of all. No test at all is a failure; nothing but skipped tests is exit code 77.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>

#include "core/simd.hpp"

namespace {

// Prints what failed on ranks other than 0, where the default printer is silenced.
class RankFailurePrinter : public testing::EmptyTestEventListener {
 public:
  explicit RankFailurePrinter(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %d] %s:%d: %s\n", rank_, result.file_name() ? result.file_name() : "?",
                 result.line_number(), result.summary());
  }
  int rank_;
};

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  testing::InitGoogleTest(&argc, argv);
  ssd::limit_simd_targets();
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new RankFailurePrinter(rank));
  }
  int result = RUN_ALL_TESTS();
  const auto* unit = testing::UnitTest::GetInstance();
  if (unit->test_to_run_count() == 0) {
    std::fprintf(stderr, "[rank %d] no test was run\n", rank);
    result = 1;
  }
  int all_skipped = unit->skipped_test_count() == unit->test_to_run_count() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &result, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &all_skipped, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Finalize();
  if (result == 0 && all_skipped != 0) return 77;
  return result;
}
