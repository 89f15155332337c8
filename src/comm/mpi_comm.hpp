// The control plane: agreement on errors, stops and sizes, and small data between ranks. A default-constructed MpiComm
// is a world of one without MPI, so that programs and tests run unlaunched.
// Every member is collective unless it says local. Errors of MPI become LibraryError: the communicator returns codes
// instead of aborting inside MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ssd {

enum class ReduceOperation { sum, min, max };

class MpiComm {
 public:
  MpiComm() = default;                // a world of one
  explicit MpiComm(void* mpi_comm);   // takes over an MPI_Comm handle made by MpiSession or split
  ~MpiComm();
  MpiComm(MpiComm&& other) noexcept;
  MpiComm& operator=(MpiComm&& other) noexcept;

  int rank() const { return rank_; }  // local
  int world_size() const { return world_size_; }  // local
  bool is_root() const { return rank_ == 0; }     // local

  void barrier() const;
  std::int64_t reduce_all(std::int64_t value, ReduceOperation operation) const;
  double reduce_all(double value, ReduceOperation operation) const;

  // The root's bytes to every rank: the same length on all.
  void broadcast_in_place(std::span<std::byte> bytes, int root = 0) const;

  // Every rank's bytes on the root, in rank order; empty on the others.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes, int root = 0) const;

  // The ranks of this node, in rank order.
  MpiComm split_by_node() const;
  // A copy with messages of its own, for another thread.
  MpiComm duplicate() const;

  void* handle() const { return handle_; }  // local; an MPI_Comm, null for a world of one

 private:
  void* handle_ = nullptr;
  int rank_ = 0;
  int world_size_ = 1;
};

}  // namespace ssd
