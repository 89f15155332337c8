// Preloaded into a program under test (LD_PRELOAD), it spoils one call on one rank. Environment:
//   SSD_FAULT_CALL     pread, fsync, rename, write, big_allocation (of 1 MiB and more),
//                      MPI_Ibarrier, MPI_Gather, MPI_Finalize
//   SSD_FAULT_ACTION   hang: never comes back; fail: with an error; kill: SIGKILL before the call;
//                      free_twice: dies inside free(), which holds malloc's lock
//   SSD_FAULT_RANK     of the process that is meant; alone: 0
//   SSD_FAULT_TRIGGER  calls do not count until this file is there (optional)
//   SSD_FAULT_PATH     nor those on files whose path does not contain this (optional)
//   SSD_FAULT_SKIP     so many calls that count go well (optional); all after them are spoilt
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

const char* variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

bool is_own_rank() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return std::strcmp(rank == nullptr ? "0" : rank, variable("SSD_FAULT_RANK")) == 0;
}

// glibc finds it with the lock held for blocks that are neither small nor mapped.
void free_twice() {
  void* volatile block = std::malloc(4000);
  void* volatile next_block =
      std::malloc(4000);  // else the first would be one with the free memory behind it
  std::free(block);
  std::free(block);
  std::free(next_block);
}

// True where the call is to fail; does not come back from the other actions.
bool is_spoilt(const char* call, const char* path) {
  if (std::strcmp(variable("SSD_FAULT_CALL"), call) != 0 || !is_own_rank()) return false;
  const char* trigger = variable("SSD_FAULT_TRIGGER");
  if (*trigger != '\0' && ::access(trigger, F_OK) != 0) return false;
  if (path != nullptr && std::strstr(path, variable("SSD_FAULT_PATH")) == nullptr) return false;
  static std::atomic<int> counted{0};
  if (counted++ < std::atoi(variable("SSD_FAULT_SKIP"))) return false;
  const char* action = variable("SSD_FAULT_ACTION");
  if (std::strcmp(action, "kill") == 0) ::raise(SIGKILL);
  if (std::strcmp(action, "free_twice") == 0) free_twice();
  while (std::strcmp(action, "hang") == 0) ::pause();
  return true;
}

bool is_spoilt(const char* call, int descriptor) {
  if (std::strcmp(variable("SSD_FAULT_CALL"), call) != 0) return false;
  char link[64], path[PATH_MAX] = "";
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const auto length = ::readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = '\0';
  return is_spoilt(call, path);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t pread(int descriptor, void* buffer, size_t count, off_t offset) {
  if (is_spoilt("pread", descriptor)) return errno = EIO, -1;
  static auto* const real = next<ssize_t(int, void*, size_t, off_t)>("pread");
  return real(descriptor, buffer, count, offset);
}

ssize_t pread64(int descriptor, void* buffer, size_t count, off64_t offset) {
  return pread(descriptor, buffer, count, offset);
}

ssize_t write(int descriptor, const void* buffer, size_t count) {
  if (is_spoilt("write", descriptor)) return errno = ENOSPC, -1;
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  return real(descriptor, buffer, count);
}

int fsync(int descriptor) {
  if (is_spoilt("fsync", descriptor)) return errno = EIO, -1;
  static auto* const real = next<int(int)>("fsync");
  return real(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  if (is_spoilt("rename", to)) return errno = EIO, -1;
  static auto* const real = next<int(const char*, const char*)>("rename");
  return real(from, to);
}

int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  if (size >= (size_t{1} << 20) && is_spoilt("big_allocation", nullptr)) return ENOMEM;
  static auto* const real = next<int(void**, size_t, size_t)>("posix_memalign");
  return real(memory, alignment, size);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return is_spoilt("MPI_Ibarrier", nullptr) ? MPI_ERR_OTHER : PMPI_Ibarrier(comm, request);
}

int MPI_Gather(const void* sent, int sent_count, MPI_Datatype sent_type, void* received, int received_count,
               MPI_Datatype received_type, int root, MPI_Comm comm) {
  if (is_spoilt("MPI_Gather", nullptr)) return MPI_ERR_OTHER;
  return PMPI_Gather(sent, sent_count, sent_type, received, received_count, received_type, root, comm);
}

int MPI_Finalize() {
  return is_spoilt("MPI_Finalize", nullptr) ? MPI_ERR_OTHER : PMPI_Finalize();
}
}
