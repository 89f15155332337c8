// A value of a checkpoint as the JSON files of tests/data/checkpoint have it: path -> plain value, and the
// tensors.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/tensor.hpp"
#include "checkpoint/value.hpp"
#include "core/digest.hpp"

namespace ssd {

class Flattened {
 public:
  explicit Flattened(const Value& root) { add("", root); }

  nlohmann::json tensors = nlohmann::json::array();
  nlohmann::json scalars = nlohmann::json::object();

 private:
  static std::string join(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "/" + name;
  }

  static nlohmann::json integer(std::int64_t number) {
    constexpr std::int64_t kExact = std::int64_t{1} << 53;
    if (number > kExact || number < -kExact) return "int:" + std::to_string(number);
    return number;
  }

  static nlohmann::json floating(double number) {
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    return number;
  }

  static nlohmann::json bytes(const Bytes& value) {
    std::string text = "bytes:";
    for (const char c : value.data) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return text;
  }

  // Positive numbers of up to 128 bits: what the files hold.
  static nlohmann::json big_integer(const BigInteger& value) {
    unsigned __int128 number = 0;
    for (std::size_t i = value.little_endian.size(); i-- > 0;) {
      number = number << 8 | static_cast<unsigned char>(value.little_endian[i]);
    }
    std::string digits;
    for (; number != 0; number /= 10) digits += static_cast<char>('0' + static_cast<int>(number % 10));
    return "int:" + std::string(digits.rbegin(), digits.rend());
  }

  static nlohmann::json tensor(const std::string& path, const TensorValue& value) {
    const auto contents = contiguous_bytes(value);
    return {{"path", path},
            {"dtype", std::string(dtype_name(value.dtype))},
            {"shape", value.shape},
            {"bytes", contents.size()},
            {"crc32", fmt::format("{:08x}", crc32(contents))}};
  }

  void add_items(const std::string& path, const std::vector<Value>& items) {
    if (items.empty()) scalars[path] = nlohmann::json::array();
    for (std::size_t i = 0; i < items.size(); ++i) add(join(path, std::to_string(i)), items[i]);
  }

  void add_dict(const std::string& path, const Dict& dict) {
    if (dict.size() == 0) scalars[path] = nlohmann::json::object();
    for (const auto& [key, value] : dict.entries()) add(join(path, key_text(key)), value);
  }

  void add(const std::string& path, const Value& value) {
    if (value.is_none()) {
      scalars[path] = nullptr;
    } else if (const auto* flag = value.get_if<bool>()) {
      scalars[path] = *flag;
    } else if (const auto* number = value.get_if<std::int64_t>()) {
      scalars[path] = integer(*number);
    } else if (const auto* real = value.get_if<double>()) {
      scalars[path] = floating(*real);
    } else if (const auto* text = value.get_if<std::string>()) {
      scalars[path] = *text;
    } else if (const auto* data = value.get_if<Bytes>()) {
      scalars[path] = bytes(*data);
    } else if (const auto* big = value.get_if<BigInteger>()) {
      scalars[path] = big_integer(*big);
    } else if (const auto* list = value.get_if<List>()) {
      add_items(path, list->items);
    } else if (const auto* tuple = value.get_if<Tuple>()) {
      add_items(path, tuple->items);
    } else if (const auto* dict = value.get_if<Dict>()) {
      add_dict(path, *dict);
    } else {
      tensors.push_back(tensor(path, *value.get_if<TensorValue>()));
    }
  }
};

// One text for everything in a value: equal texts, equal values.
inline std::string text_of_value(const Value& value) {
  const Flattened flat(value);
  return flat.scalars.dump() + flat.tensors.dump();
}

}  // namespace ssd
