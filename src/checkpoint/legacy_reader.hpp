// Reads the format that torch.save wrote before version 1.6 (and still writes on demand): five pickles one
// after the other - magic number, protocol version, facts of the machine, the object, the storages' keys -
// and then the storages. It has no checksums: damage inside a tensor's bytes is not seen. Throws Error; the
// text does not name the file.
#pragma once

#include "checkpoint/byte_source.hpp"
#include "checkpoint/value.hpp"

namespace ssd {

Value read_legacy(const ByteSource& source);

}  // namespace ssd
