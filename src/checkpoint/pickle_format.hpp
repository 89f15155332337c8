// The opcodes of the pickle protocols 2 and 3 that are read, and the globals. Source of the numbers:
// CPython's Lib/pickletools.py. What is not in here is refused by the reader; see FORMAT.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ssd {

enum class Opcode : std::uint8_t {
  proto = 0x80,
  stop = '.',
  mark = '(',
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  long1 = 0x8a,
  long4 = 0x8b,
  binfloat = 'G',
  binunicode = 'X',
  binstring = 'T',        // str of Python 2
  short_binstring = 'U',  // str of Python 2
  binbytes = 'B',         // protocol 3
  short_binbytes = 'C',   // protocol 3
  empty_list = ']',
  append = 'a',
  appends = 'e',
  empty_tuple = ')',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  empty_dict = '}',
  setitem = 's',
  setitems = 'u',
  global = 'c',
  reduce = 'R',
  build = 'b',
  binpersid = 'Q',
  binput = 'q',
  long_binput = 'r',
  binget = 'h',
  long_binget = 'j',
};

// Containers within containers; a checkpoint has about five levels. Bounds recursion over values, destructors
// included.
inline constexpr int kMaxDepth = 64;

// Bounds on what a hostile pickle can make: some hundred MB. A checkpoint of ResNet-152 with momentum has 0.4
// MB and 10,000 containers, those that describe its tensors included.
inline constexpr std::size_t kMaxContainers = std::size_t{1} << 18;
inline constexpr std::size_t kMaxPickleBytes = std::size_t{4} << 20;

}  // namespace ssd
