#include "core/error.hpp"

#include <cstring>
#include <utility>

namespace ssd {

LibraryError::LibraryError(std::string library, std::string call, std::string text)
    : Error(fmt::format("{}: {} failed: {}", library, call, text)),
      library_(std::move(library)),
      call_(std::move(call)) {}

Error system_error(const char* what, const std::string& path, int error_number) {
  return Error(fmt::format("cannot {} '{}': {}", what, path, std::strerror(error_number)));
}

namespace detail {

void throw_contract_error(const char* condition, const char* file, int line) {
  throw ContractError(fmt::format("{}:{}: contract broken: {}", file, line, condition));
}

}  // namespace detail
}  // namespace ssd
