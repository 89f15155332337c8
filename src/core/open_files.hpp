// How many files a process may have open: what the shell's `ulimit -n` shows and sets. Local.
#pragma once

#include <cstddef>
#include <string>

namespace ssd {

// The soft limit becomes the hard one. Where the system refuses that, it stays as it is.
void raise_open_file_limit();

std::size_t open_file_limit();  // the soft one

// Throws Error where so many files more than are open now, and some for the rest of the program, would go
// beyond the limit. whose: of the files, for the message.
void expect_room_for_files(std::size_t count, const std::string& whose);

}  // namespace ssd
