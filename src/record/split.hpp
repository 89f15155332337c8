// The two parts of a data set.
#pragma once

namespace ssd {

enum class Split { train, val };
const char* split_name(Split split);  // "train", "val"

}  // namespace ssd
