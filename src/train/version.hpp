// What a program was built with and what it runs with, for --version.
#pragma once

#include <string>

namespace ssd {

std::string version_text(const std::string& program);

}  // namespace ssd
