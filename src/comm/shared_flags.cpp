#include "comm/shared_flags.hpp"

#include <exception>
#include <utility>

#include "comm/mpi_check.hpp"
#include "core/log.hpp"
#include "core/phase.hpp"

namespace ssd {

SharedFlags::SharedFlags(const MpiComm& world) : comm_(world.duplicate()) {}

SharedFlags::~SharedFlags() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    complete();
  } catch (const std::exception& error) {
    log_warning("{}", error.what());
  }
}

std::uint32_t SharedFlags::exchange(std::uint32_t own) {
  if (comm_.handle() == nullptr) return own;
  complete();
  const auto result = received_;
  sent_ = own;
  MPI_Request request = MPI_REQUEST_NULL;
  SSD_MPI_CALL(MPI_Iallreduce, &sent_, &received_, 1, MPI_UINT32_T, MPI_BOR,
               static_cast<MPI_Comm>(comm_.handle()), &request);
  request_ = request;
  return result;
}

void SharedFlags::complete() {
  if (request_ == nullptr) return;
  auto request = static_cast<MPI_Request>(std::exchange(request_, nullptr));
  const WaitForRanksMark mark;
  SSD_MPI_CALL(MPI_Wait, &request, MPI_STATUS_IGNORE);
}

}  // namespace ssd
