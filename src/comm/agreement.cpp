#include "comm/agreement.hpp"

#include <exception>

#include "comm/mpi_session.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/simd.hpp"

namespace ssd {

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
  try {
    MpiSession session(&argc, &argv);
    try {
      run_in_agreement(session.world(), limit_simd_targets);
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
