// The run of ssd_infer: pictures in, detections and drawn pictures out.
#pragma once

#include "comm/mpi_comm.hpp"
#include "infer/infer_options.hpp"

namespace ssd {

// Returns the exit code: 1 where a picture could not be used; the others are done, and each that was not is
// named at the end. Throws Error where nothing can be done. world: of one.
int run_inference(const InferOptions& options, const MpiComm& world);

}  // namespace ssd
