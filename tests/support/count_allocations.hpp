// Counts what operator new gives out in a test that is built with count_allocations.cpp.
#pragma once

#include <cstddef>

namespace ssd {

void reset_bytes_allocated();
std::size_t bytes_allocated();  // in total since the reset, never mind what was freed in between

}  // namespace ssd
