#include "comm/gather_texts.hpp"

namespace ssd {

std::vector<std::string> gather_texts(const MpiComm& world, const std::string& own) {
  std::vector<std::string> texts;
  for (const auto& bytes : world.gather(std::as_bytes(std::span(own)))) {
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

}  // namespace ssd
