// A small file read whole.
#pragma once

#include <filesystem>
#include <string>

namespace ssd {

// Throws Error that names the file: missing, a folder, or not to be read to its end.
std::string read_text_file(const std::filesystem::path& path);

}  // namespace ssd
