#pragma once

#include <cstdint>
#include <span>

#include "comm/mpi_comm.hpp"

namespace ssd {

// Collective. The root's vector or string to every rank, of whatever length.
template <class Values>
void broadcast_any_length(const MpiComm& comm, Values& values) {
  auto size = std::uint64_t{values.size()};
  comm.broadcast_in_place(std::as_writable_bytes(std::span(&size, 1)));
  values.resize(size);
  comm.broadcast_in_place(std::as_writable_bytes(std::span(values)));
}

}  // namespace ssd
