// The zip archive of torch.save: <top folder>/data.pkl, data/0, data/1, ..., byteorder, version. Throws
// Error; the text does not name the file.
#pragma once

#include "checkpoint/byte_source.hpp"
#include "checkpoint/value.hpp"
#include "checkpoint/zip_writer.hpp"

namespace ssd {

Value read_torch_archive(const ByteSource& source);
void write_torch_archive(const Value& root, ZipWriter::Sink sink);

}  // namespace ssd
