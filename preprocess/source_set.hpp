// What one split is packed from, as it is on disk: the annotations, and the sizes of the pictures' files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "coco/annotations.hpp"
#include "comm/mpi_comm.hpp"
#include "preprocess/sources.hpp"

namespace ssd {

struct SourceSet {
  SplitSource source;
  AnnotationSet set;
  std::vector<AnnotationProblem> problems;
  std::vector<std::vector<std::size_t>> annotations_of;  // of each image: places in set.annotations
};

// Each rank reads all of it; the root says what is odd. Throws Error where there is no image or no category (what is
// wrong with those that are there is logged), and as read_annotations does.
SourceSet read_source_set(const SplitSource& source, const MpiComm& world);

inline constexpr auto kNoFile = std::numeric_limits<std::uint64_t>::max();

// Of each image's file in bytes; kNoFile where there is none. Collective: each rank looks at its part.
std::vector<std::uint64_t> measure_files(const SourceSet& source, unsigned threads, const MpiComm& world);

// Throws Error where no picture is there at all, with the folder that was meant, perhaps.
void validate_right_folder(const SourceSet& source, const std::vector<std::uint64_t>& file_bytes);

}  // namespace ssd
