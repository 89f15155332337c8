#include "core/command_line.hpp"

#include <cctype>
#include <set>

#include "core/error.hpp"

namespace ssd {
namespace {

namespace po = boost::program_options;

// Boost would take "-0.5" for a flag.
std::vector<po::option> take_negative_number(Words& rest) {
  const auto& word = rest.front();
  const bool is_negative_number = word.size() > 1 && word[0] == '-' &&
                                  (std::isdigit(static_cast<unsigned char>(word[1])) != 0 || word[1] == '.');
  if (!is_negative_number) return {};
  po::option value;
  value.position_key = 0;
  value.value.push_back(word);
  value.original_tokens.push_back(word);
  rest.erase(rest.begin());
  return {value};
}

void keep_later(std::vector<po::option>& options, const char* positional, const SubjectOf& subject_of) {
  std::vector<po::option> kept;
  std::set<std::string> subjects;
  for (auto option = options.rbegin(); option != options.rend(); ++option) {
    if (option->string_key == positional || subjects.insert(subject_of(option->string_key)).second)
      kept.push_back(*option);
  }
  options.assign(kept.rbegin(), kept.rend());
}

}  // namespace

po::variables_map parse_command_line(const std::string& program, const Words& words,
                                     const po::options_description& options, const char* positional,
                                     const SubjectOf& subject_of) {
  po::positional_options_description positions;
  positions.add(positional, -1);
  const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  po::variables_map values;
  try {
    auto parser = po::command_line_parser(words).options(options).positional(positions).style(style);
    auto parsed = parser.extra_style_parser(take_negative_number).run();
    keep_later(parsed.options, positional, subject_of);
    po::store(parsed, values);
    po::notify(values);
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}; see {} --help", error.what(), program));
  }
  return values;
}

}  // namespace ssd
