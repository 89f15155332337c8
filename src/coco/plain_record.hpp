// One record of a COCO results file, from text to Detection, as programs write them: plain keys and numbers
// are read in one pass over their bytes. Any other record is left to AnyRecordReader (coco/any_record.hpp).
// Both give the same values: numbers are correctly rounded. Pure, thread safe.
#pragma once

#include <cstddef>

#include "coco/detections.hpp"

namespace ssd {

// Both functions look at no more than kRecordPadding bytes behind `end`; those must be there and be 0.
inline constexpr std::size_t kRecordPadding = 64;

// The record whose '{' is at `at`: the place behind its '}', or null where it is not a plain one or reaches
// over the end.
const char* read_plain_record(const char* at, const char* end, Detection& detection);

// The place behind the JSON value that begins at `at`, which is an object, an array, a string or a word; null
// where it reaches over the end. Says nothing of its being valid.
const char* end_of_value(const char* at, const char* end);

}  // namespace ssd
