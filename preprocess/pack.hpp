// Packs one split: annotations and pictures in, a published set of shards out. Collective: the ranks share
// the shards, each with its threads, and the files do not depend on the number of either.
#pragma once

#include "comm/mpi_comm.hpp"
#include "preprocess/options.hpp"
#include "preprocess/sources.hpp"

namespace ssd {

// Prints a summary to stdout, problems and progress to stderr. A complete set made from the same input is
// left as it is; of a run that died the finished shards are used. Throws AgreedFailure, on all ranks and with
// its reason printed, where nothing was published: something is wrong with the input and --skip-bad is not
// given (everything is listed before), the folder holds another set and --force is not given, writing
// failed.
void pack_split(const SplitSource& source, const PreprocessOptions& options, const MpiComm& world);

}  // namespace ssd
