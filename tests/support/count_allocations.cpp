#include "support/count_allocations.hpp"

#include <cstdlib>
#include <new>

namespace {
std::size_t allocated = 0;
}

void* operator new(std::size_t bytes) {
  allocated += bytes;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace ssd {

void reset_bytes_allocated() {
  allocated = 0;
}
std::size_t bytes_allocated() {
  return allocated;
}

}  // namespace ssd
