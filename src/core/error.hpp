// Errors and checks. Two families: SSD_VALIDATE guards what comes from outside (files, flags, environment,
// other ranks) and throws Error, whose text reaches the user; SSD_EXPECT guards a contract between two pieces
// of this program. Both are always on. Message = problem, value, suggestion.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace ssd {

// A run that cannot go on because of something outside the program. Exit code 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Wrong use of a program: flags and arguments. Exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

// A broken contract inside the program: a fault of the program, not of its user. Exit code 1.
class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// A call into a C library (MPI, CUDA, NCCL, HDF5) that failed.
class LibraryError : public Error {
 public:
  LibraryError(std::string library, std::string call, std::string text);

  const std::string& library() const { return library_; }
  const std::string& call() const { return call_; }

 private:
  std::string library_;
  std::string call_;
};

// The error text of errno after a failed system call on a path: "cannot open 'x': No such file or directory".
Error system_error(const char* what, const std::string& path, int error_number);

namespace detail {
[[noreturn]] void throw_contract_error(const char* condition, const char* file, int line);
}  // namespace detail

}  // namespace ssd

#define SSD_VALIDATE(condition, ...)                \
  do {                                              \
    if (!(condition)) [[unlikely]]                  \
      throw ::ssd::Error(fmt::format(__VA_ARGS__)); \
  } while (false)

#define SSD_EXPECT(condition)                                              \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::ssd::detail::throw_contract_error(#condition, __FILE__, __LINE__); \
  } while (false)
