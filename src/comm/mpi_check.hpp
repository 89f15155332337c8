// The one check of MPI's return codes. Only comm/ calls MPI.
#pragma once

#include <mpi.h>

namespace ssd::detail {

// Throws LibraryError with the call and MPI's text.
void check_mpi(int code, const char* call);

}  // namespace ssd::detail

#define SSD_MPI_CALL(function, ...) ::ssd::detail::check_mpi(function(__VA_ARGS__), #function)
