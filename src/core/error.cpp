#include "core/error.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/open_files.hpp"

namespace ssd {

LibraryError::LibraryError(std::string library, std::string call, std::string text)
    : Error(fmt::format("{}: {} failed: {}", library, call, text)),
      library_(std::move(library)),
      call_(std::move(call)) {}

Error system_error(const char* what, const std::string& path, int error_number) {
  auto text = fmt::format("cannot {} '{}': {}", what, path, std::strerror(error_number));
  if (error_number == EMFILE) text += fmt::format("; ulimit -n is {}: raise it first", open_file_limit());
  return Error(text);
}

namespace detail {

void throw_contract_error(const char* condition, const char* file, int line) {
  throw ContractError(fmt::format("{}:{}: contract broken: {}", file, line, condition));
}

}  // namespace detail
}  // namespace ssd
