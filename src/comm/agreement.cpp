#include "comm/agreement.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "comm/launch.hpp"
#include "comm/mpi_session.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/open_files.hpp"
#include "core/simd.hpp"

namespace ssd {
namespace {

// What does no work runs however it was started.
bool asks_for_text_alone(int argc, char** argv) {
  constexpr std::array<std::string_view, 4> kQuestions{"--help", "-h", "--version", "--print-config"};
  return std::any_of(argv, argv + argc, [&](std::string_view word) {
    return std::find(kQuestions.begin(), kQuestions.end(), word) != kQuestions.end();
  });
}

}  // namespace

Failure describe_current_exception() {
  try {
    throw;
  } catch (const UsageError& error) {
    return {2, error.what()};
  } catch (const std::bad_alloc&) {
    return {1, "out of memory"};
  } catch (const std::exception& error) {
    // Messages of some libraries go on with a stack trace: the first line says what happened.
    const std::string text = error.what();
    return {1, text.substr(0, text.find('\n'))};
  } catch (...) {
    return {1, "unknown exception"};
  }
}

void run_in_agreement(const MpiComm& comm, const std::function<void()>& phase) {
  Failure failure{0, {}};
  try {
    phase();
  } catch (...) {
    failure = describe_current_exception();
  }
  const auto no_rank = std::int64_t{comm.world_size()};
  const auto first =
      comm.reduce_all(failure.exit_code != 0 ? std::int64_t{comm.rank()} : no_rank, ReduceOperation::min);
  if (first == no_rank) return;
  const int exit_code = static_cast<int>(comm.reduce_all(
      first == comm.rank() ? std::int64_t{failure.exit_code} : std::int64_t{0}, ReduceOperation::max));
  if (first == comm.rank()) log_error("{}", failure.text);
  throw AgreedFailure{exit_code};
}

int run_program(int argc, char** argv, const std::function<int(const MpiComm&)>& body) {
  raise_open_file_limit();
  // Read before MPI starts, which changes the environment.
  const auto objection =
      asks_for_text_alone(argc, argv) ? std::nullopt : objection_to_running_alone(std::getenv);
  try {
    MpiSession session(&argc, &argv);
    try {
      run_in_agreement(session.world(), [&] {
        limit_simd_targets();
        if (session.world().world_size() == 1 && objection) throw UsageError(*objection);
      });
      return body(session.world());
    } catch (const AgreedFailure& failure) {
      return failure.exit_code;
    } catch (...) {
      const auto failure = describe_current_exception();
      log_error("{}", failure.text);
      if (session.world().world_size() > 1) abort_job(failure.exit_code);
      return failure.exit_code;
    }
  } catch (...) {
    const auto failure = describe_current_exception();
    log_error("{}", failure.text);
    return failure.exit_code;
  }
}

}  // namespace ssd
