// What must hold of the readers of this room for any bytes whatever. For mutated files in tests and for a
// fuzzer. Each throws std::logic_error with what does not hold.
#pragma once

#include <string>

namespace ssd::test {

// As a results file: either detections or one Error, the same for any number of threads and size of blocks;
// and the detections are those that another JSON library reads, where it takes the text too.
void check_results_text(const std::string& text);

// As an annotation file: a set in which every annotation has its image and category, or an Error.
void check_annotations_text(const std::string& text);

}  // namespace ssd::test
