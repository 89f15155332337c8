// The arguments of a program, read by Boost.ProgramOptions in the same way for all programs:
// - an option is written in full: --draw-f is not taken for --draw-format;
// - of an option given twice the later one counts, so that what a script passes on overrides what it sets;
// - a negative number is a value, not an option.
#pragma once

#include <boost/program_options.hpp>
#include <functional>
#include <string>
#include <vector>

namespace ssd {

using Words = std::vector<std::string>;

inline constexpr unsigned kHelpColumns = 100;

// Of two options with the same subject the later one counts, as of one given twice.
using SubjectOf = std::function<std::string(const std::string& option)>;

// words: without the program's name. Words that belong to no option become values of the option `positional`.
// Throws UsageError, in whose one line the program's --help is named.
boost::program_options::variables_map parse_command_line(
    const std::string& program, const Words& words,
    const boost::program_options::options_description& options, const char* positional,
    const SubjectOf& subject_of = [](const std::string& option) { return option; });

}  // namespace ssd
