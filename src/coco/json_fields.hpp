// Reading single fields of a COCO JSON with simdjson's On-Demand parser: each function gives the value, or
// nothing and a complaint that names what was found. Used by the readers of this folder alone. A structural
// fault of the JSON leaves as simdjson::simdjson_error.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "coco/annotations.hpp"

namespace ssd {

using JsonValue = simdjson::ondemand::value;

// Opens and parses the file, calls read on the document and checks that nothing follows it. The values of
// members named "segmentation" are 0 in it (coco/json_without_masks.hpp).
// Throws Error where the file cannot be read or is not JSON.
void read_json_file(const std::filesystem::path& path,
                    const std::function<void(simdjson::ondemand::document&)>& read);

// An exact integer: any 64-bit integer, and decimals that are whole up to 2^53 (7.0 is 7).
std::optional<std::int64_t> read_integer(JsonValue value, std::string& complaint);
std::optional<double> read_number(JsonValue value, std::string& complaint);  // finite
std::optional<BoxXywh> read_box(JsonValue value, std::string& complaint);    // 4 finite numbers
std::optional<std::string> read_string(JsonValue value, std::string& complaint);
std::optional<bool> read_flag(JsonValue value, std::string& complaint);  // 0, 1, false, true

}  // namespace ssd
