// NCCL's sequence of calls, beyond the contract of every communicator, and that the double finds what is
// wrong in one. Each rank is a world of its own here; faults that end whole jobs are in nccl_fault_test.cpp.
#include <gtest/gtest.h>
#include <mpi.h>

#include "comm/agreement.hpp"
#include "comm/nccl_double.hpp"
#include "comm/nccl_gradient_communicator.hpp"
#include "core/error.hpp"
#include "support/world.hpp"

namespace ssd {
namespace {

using test::copy_of;
using test::NcclFault;
using Rules = std::vector<std::string>;

class NcclSequence : public testing::Test {
 protected:
  void use(const test::NcclInjection& injection, MPI_Comm comm = MPI_COMM_SELF) {
    world = copy_of(comm);
    nccl = std::make_unique<test::NcclDouble>(world, injection);
    functions = nccl->functions();
    ASSERT_EQ(nccl->device().create_stream(&compute_stream).code, CallCode::success);
  }

  std::unique_ptr<GradientCommunicator> make() {
    NcclOptions options;
    options.compute_stream = compute_stream;
    return make_nccl_gradient_communicator(world, options, functions);
  }

  // A step of one average: the gradient is written and the average read on the compute stream.
  void run_step(GradientCommunicator& communicator, std::size_t count = 4) {
    values.resize(count);
    const auto nothing = [] { return true; };
    EXPECT_EQ(nccl->device().launch(compute_stream, values.data(), Use::write, nothing).code,
              CallCode::success);
    communicator.start_average(values.data(), count, WireType::float32);
    communicator.finish();
    EXPECT_EQ(nccl->device().launch(compute_stream, values.data(), Use::read, nothing).code,
              CallCode::success);
    nccl->device().synchronize(compute_stream);
  }

  // The compute stream of the test is all that is left.
  void expect_nothing_left() { EXPECT_EQ(nccl->leaks(), Rules{"1 streams"}); }

  using Use = test::SimulatedDevice::Use;
  MpiComm world;
  std::vector<float> values;
  std::unique_ptr<test::NcclDouble> nccl;
  NcclFunctions functions;
  void* compute_stream = nullptr;
};

// One wait on one stream is left out.
auto without_wait_of(void* stream, bool is_on_stream, const NcclFunctions& functions) {
  return [stream, is_on_stream, wait = functions.stream_wait_event](void* on, void* event) {
    return (on == stream) == is_on_stream ? CallResult{} : wait(on, event);
  };
}

TEST_F(NcclSequence, breaks_no_rule_and_leaves_nothing) {
  use({});
  auto communicator = make();
  for (int step = 0; step < 3; ++step) run_step(*communicator);
  communicator.reset();
  EXPECT_EQ(nccl->broken_rules(), Rules{});
  expect_nothing_left();
}

TEST_F(NcclSequence, the_double_finds_an_average_that_does_not_wait_for_its_gradients) {
  use({});
  functions.stream_wait_event = without_wait_of(compute_stream, /*is_on_stream=*/false, functions);
  run_step(*make());
  EXPECT_EQ(nccl->broken_rules(), Rules{"a buffer is used without a wait for the stream that writes it"});
}

TEST_F(NcclSequence, the_double_finds_a_use_that_does_not_wait_for_its_average) {
  use({});
  functions.stream_wait_event = without_wait_of(compute_stream, /*is_on_stream=*/true, functions);
  run_step(*make());
  EXPECT_EQ(nccl->broken_rules(), Rules{"a buffer is used without a wait for the stream that writes it"});
}

TEST_F(NcclSequence, the_double_finds_a_wait_for_an_event_that_is_recorded_afterwards) {
  use({});
  functions.event_record = [](void*, void*) { return CallResult{}; };
  run_step(*make());
  EXPECT_EQ(nccl->broken_rules().at(0), "a stream waits for an event that was never recorded");
}

TEST_F(NcclSequence, the_double_finds_ranks_that_average_different_counts) {
  use({}, MPI_COMM_WORLD);
  run_step(*make(), world.is_root() ? 4 : 5);
  const Rules expected{"the ranks average buffers of different counts or types"};
  EXPECT_EQ(nccl->broken_rules(), world.world_size() > 1 ? expected : Rules{});
}

TEST_F(NcclSequence, the_double_finds_a_use_before_the_last_call_was_carried_out) {
  use({});
  functions.comm_state = [](void*) { return CallResult{}; };
  auto communicator = make();
  run_step(*communicator);
  communicator.reset();
  EXPECT_EQ(nccl->broken_rules().at(0), "a communicator was used before its last call had been carried out");
}

// The watch looks every 100 ms: several times while each call is polled.
TEST_F(NcclSequence, calls_that_take_long_are_polled_and_never_made_by_two_threads_at_a_time) {
  use({.polls_in_progress = 1000, .call_time = std::chrono::microseconds(300)});
  auto communicator = make();
  run_step(*communicator);
  communicator.reset();
  EXPECT_EQ(nccl->broken_rules(), Rules{});
  expect_nothing_left();
}

TEST_F(NcclSequence, without_a_unique_id_all_ranks_fail_and_nothing_is_left) {
  use({.fault = NcclFault::no_unique_id}, MPI_COMM_WORLD);
  EXPECT_THROW(make(), AgreedFailure);  // after a line that belongs to the test
  expect_nothing_left();
}

TEST_F(NcclSequence, a_start_that_fails_throws_and_leaves_nothing) {
  use({.fault = NcclFault::start_error});
  EXPECT_THROW(make(), LibraryError);
  EXPECT_EQ(nccl->broken_rules(), Rules{});
  expect_nothing_left();
}

TEST_F(NcclSequence, T5_06_a_start_that_never_ends_throws_after_its_time_with_a_hint) {
  use({.fault = NcclFault::start_never_ends});
  NcclOptions options;
  options.start_timeout = std::chrono::seconds(1);
  const auto begin = std::chrono::steady_clock::now();
  try {
    make_nccl_gradient_communicator(world, options, functions);
    FAIL() << "no exception";
  } catch (const LibraryError& error) {
    EXPECT_STREQ(
        error.what(),
        "NCCL: ncclCommInitRankConfig failed: it did not end within 1 s; NCCL_DEBUG=INFO tells more, "
        "NCCL_SOCKET_IFNAME chooses the network interface");
  }
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GE(seconds, 1);
  EXPECT_LT(seconds, 5);  // a busy machine
  EXPECT_EQ(nccl->broken_rules(), Rules{});
  expect_nothing_left();
}

TEST_F(NcclSequence, an_average_that_fails_throws_and_the_communicator_is_not_touched_again) {
  use({.fault = NcclFault::average_error, .average = 1});
  auto communicator = make();
  run_step(*communicator);
  EXPECT_THROW(run_step(*communicator), LibraryError);
  communicator.reset();
  EXPECT_EQ(nccl->broken_rules(), Rules{});
  expect_nothing_left();
}

TEST_F(NcclSequence, is_aborted_and_not_finalized_while_an_exception_is_in_flight) {
  use({});
  int finalized = 0, aborted = 0;
  functions.comm_finalize = [&, next = functions.comm_finalize](void* comm) {
    return ++finalized, next(comm);
  };
  functions.comm_abort = [&, next = functions.comm_abort](void* comm) { return ++aborted, next(comm); };
  try {
    auto communicator = make();
    communicator->start_average(values.data(), 0, WireType::float32);
    throw Error("something else");
  } catch (const Error&) {
  }
  EXPECT_EQ(finalized, 0);
  EXPECT_EQ(aborted, 1);
  EXPECT_EQ(nccl->broken_rules(), Rules{});
  expect_nothing_left();
}

TEST_F(NcclSequence, a_finish_that_never_ends_is_given_up_after_the_time_of_a_step) {
  use({.fault = NcclFault::finish_never_ends});
  NcclOptions options;
  options.compute_stream = compute_stream;
  options.step_timeout = std::chrono::seconds(1);
  auto communicator = make_nccl_gradient_communicator(world, options, functions);
  run_step(*communicator);
  communicator.reset();  // warns
  EXPECT_EQ(nccl->broken_rules(), Rules{});
  expect_nothing_left();
}

}  // namespace
}  // namespace ssd
