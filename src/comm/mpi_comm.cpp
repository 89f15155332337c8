#include "comm/mpi_comm.hpp"

#include <algorithm>
#include <utility>

#include "comm/mpi_check.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/phase.hpp"

namespace ssd {

namespace detail {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw LibraryError("MPI", call, text);
}

}  // namespace detail

namespace {

// A count of MPI is an int: longer messages go in pieces of this many bytes.
constexpr std::size_t kLargestMessage = std::size_t{1} << 30;

MPI_Comm comm_of(void* handle) {
  return static_cast<MPI_Comm>(handle);
}

MPI_Op op_of(ReduceOperation operation) {
  switch (operation) {
    case ReduceOperation::sum:
      return MPI_SUM;
    case ReduceOperation::min:
      return MPI_MIN;
    default:
      return MPI_MAX;
  }
}

constexpr int kGatherTag = 1;

}  // namespace

MpiComm::MpiComm(void* mpi_comm) : handle_(mpi_comm) {
  SSD_MPI_CALL(MPI_Comm_set_errhandler, comm_of(handle_), MPI_ERRORS_RETURN);
  SSD_MPI_CALL(MPI_Comm_rank, comm_of(handle_), &rank_);
  SSD_MPI_CALL(MPI_Comm_size, comm_of(handle_), &world_size_);
}

// MPI_Comm_free is collective: it is left out while an exception is in flight (the job is about to be
// aborted).
MpiComm::~MpiComm() {
  int finalized = 0;
  if (handle_ == nullptr || std::uncaught_exceptions() > 0) return;
  MPI_Finalized(&finalized);
  if (finalized != 0) return;
  auto comm = comm_of(handle_);
  MPI_Comm_free(&comm);
}

MpiComm::MpiComm(MpiComm&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      rank_(std::exchange(other.rank_, 0)),
      world_size_(std::exchange(other.world_size_, 1)) {}

MpiComm& MpiComm::operator=(MpiComm&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(rank_, other.rank_);
  std::swap(world_size_, other.world_size_);
  return *this;
}

void MpiComm::barrier() const {
  const WaitForRanksMark mark;
  if (handle_ != nullptr) SSD_MPI_CALL(MPI_Barrier, comm_of(handle_));
}

std::int64_t MpiComm::reduce_all(std::int64_t value, ReduceOperation operation) const {
  const WaitForRanksMark mark;
  if (handle_ != nullptr) {
    SSD_MPI_CALL(MPI_Allreduce, MPI_IN_PLACE, &value, 1, MPI_INT64_T, op_of(operation), comm_of(handle_));
  }
  return value;
}

double MpiComm::reduce_all(double value, ReduceOperation operation) const {
  const WaitForRanksMark mark;
  if (handle_ != nullptr) {
    SSD_MPI_CALL(MPI_Allreduce, MPI_IN_PLACE, &value, 1, MPI_DOUBLE, op_of(operation), comm_of(handle_));
  }
  return value;
}

void MpiComm::broadcast_in_place(std::span<std::byte> bytes, int root) const {
  if (handle_ == nullptr) return;
  const WaitForRanksMark mark;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kLargestMessage));
    SSD_MPI_CALL(MPI_Bcast, piece.data(), static_cast<int>(piece.size()), MPI_BYTE, root, comm_of(handle_));
    bytes = bytes.subspan(piece.size());
  }
}

std::vector<std::vector<std::byte>> MpiComm::gather(std::span<const std::byte> bytes, int root) const {
  std::vector<std::vector<std::byte>> gathered;
  if (handle_ == nullptr) {
    gathered.emplace_back(bytes.begin(), bytes.end());
    return gathered;
  }
  const WaitForRanksMark mark;
  const auto size = static_cast<std::uint64_t>(bytes.size());
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(world_size_));
  SSD_MPI_CALL(MPI_Gather, &size, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, root, comm_of(handle_));
  const auto for_pieces = [](auto whole, auto&& transfer) {
    for (std::size_t at = 0; at < whole.size(); at += kLargestMessage) {
      transfer(whole.subspan(at, std::min(kLargestMessage, whole.size() - at)));
    }
  };
  if (rank_ != root) {
    for_pieces(bytes, [&](std::span<const std::byte> piece) {
      SSD_MPI_CALL(MPI_Send, piece.data(), static_cast<int>(piece.size()), MPI_BYTE, root, kGatherTag,
                   comm_of(handle_));
    });
    return gathered;
  }
  for (int source = 0; source < world_size_; ++source) {
    auto& received = gathered.emplace_back(sizes[static_cast<std::size_t>(source)]);
    if (source == root) {
      std::copy(bytes.begin(), bytes.end(), received.begin());
      continue;
    }
    for_pieces(std::span(received), [&](std::span<std::byte> piece) {
      SSD_MPI_CALL(MPI_Recv, piece.data(), static_cast<int>(piece.size()), MPI_BYTE, source, kGatherTag,
                   comm_of(handle_), MPI_STATUS_IGNORE);
    });
  }
  return gathered;
}

MpiComm MpiComm::split_by_node() const {
  if (handle_ == nullptr) return {};
  const WaitForRanksMark mark;
  MPI_Comm node = MPI_COMM_NULL;
  SSD_MPI_CALL(MPI_Comm_split_type, comm_of(handle_), MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
  return MpiComm(node);
}

MpiComm MpiComm::duplicate() const {
  if (handle_ == nullptr) return {};
  const WaitForRanksMark mark;
  MPI_Comm copy = MPI_COMM_NULL;
  SSD_MPI_CALL(MPI_Comm_dup, comm_of(handle_), &copy);
  return MpiComm(copy);
}

}  // namespace ssd
