// One record of a COCO results file in any form that JSON allows, read by simdjson: slower than
// plain_record.hpp, and able to say what is wrong.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "coco/detections.hpp"

namespace ssd {

// Not thread safe.
class AnyRecordReader {
 public:
  // record: the whole text of it. Throws Error that names file, index, field and value.
  Detection read(std::string_view record, const std::string& file, std::size_t index);

 private:
  simdjson::ondemand::parser parser_;
};

}  // namespace ssd
