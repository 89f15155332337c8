// Which options that decide a run's course have changed since its checkpoint was written. Pure; no torch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ssd {

// then, now: configurations as --print-config writes them, a line "name = value" each. One text for each
// option that differs: "--learning-rate 0.001 (then 0.0026)". Options that only one of the two knows are
// passed over, and those that have warnings of their own: seed, batch size and what the machine decides.
std::vector<std::string> course_changes(std::string_view then, std::string_view now);

}  // namespace ssd
