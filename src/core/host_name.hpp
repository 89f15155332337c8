#pragma once

#include <string>

namespace ssd {

// gethostname, or "host" where it fails.
std::string host_name();

}  // namespace ssd
