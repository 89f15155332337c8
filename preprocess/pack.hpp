// Packs one split: annotations and pictures in, a published set of shards out. Starts threads; HDF5 is called
// in the calling thread alone.
#pragma once

#include "preprocess/options.hpp"
#include "preprocess/sources.hpp"

namespace ssd {

// Prints a summary to stdout, problems and progress to stderr. Throws Error where nothing was published:
// something is wrong with the input and --skip-bad is not given (everything is listed before), the folder
// holds another set and
// --force is not given, writing failed. A complete set made from the same input is left as it is.
void pack_split(const SplitSource& source, const PreprocessOptions& options);

}  // namespace ssd
