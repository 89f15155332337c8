#include "core/host_name.hpp"

#include <unistd.h>

namespace ssd {

std::string host_name() {
  char name[256] = "host";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace ssd
