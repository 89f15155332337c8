#pragma once

#include <string>

#include "core/error.hpp"

namespace ssd {

// Throws UsageError with the message unless the condition holds: for what flags and arguments say.
inline void expect_usage(bool condition, const std::string& message) {
  if (!condition) throw UsageError(message);
}

}  // namespace ssd
