// The log for machines: a file of lines `DLLL {json}` in the form of NVIDIA's DLLogger, which --json-summary
// names.
//   DLLL {"timestamp":"1588888888.123456","datetime":"2020-05-07 22:01:28.123456","elapsedtime":"12.345678",
//         "type":"LOG","step":[1,20],"data":{"loss":4.25}}
// (one line; times in seconds, local date)
// A step is a number, an array ([epoch, iteration]; [] for the whole run) or "PARAMETER".
// A run that resumes appends to the file of the one before. Each line is one write call, so it is in the file
// at once and whole. Not thread safe; one rank alone writes. Every member throws Error where the file cannot
// be written.
#pragma once

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace ssd {

class JsonLines {
 public:
  using Json = nlohmann::ordered_json;  // keys stay in the order they were put in

  explicit JsonLines(const std::filesystem::path& path);
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  // Numbers that are not finite become null: JSON has no others.
  void log(const Json& step, const Json& data);
  void parameters(const Json& data);  // the options of the run, once at its start
  // What a quantity is: metadata("loss", {{"unit", "..."}}), before it is logged.
  void metadata(const std::string& metric, const Json& metadata);

 private:
  Json stamp(const char* type) const;
  void write_line(const Json& line);
  void write_text(std::string_view text);

  std::string path_;
  int descriptor_ = -1;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace ssd
