// The values a checkpoint file holds: Python's None, bool, int, float, str, bytes, list, tuple, dict,
// OrderedDict and Counter, and tensors. A Value is cheap to copy: containers and texts are shared and cannot
// be changed once they are inside a Value. So there are no cycles, and values may be read from several
// threads.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint/tensor.hpp"
#include "core/error.hpp"

namespace ssd {

class Value;
class Dict;

struct Bytes {
  std::string data;
};

// An integer that does not fit 64 bits, as two's complement, least byte first. Kept so that a file that has
// one can be read; nothing computes with it.
struct BigInteger {
  std::string little_endian;
};

struct List {
  std::vector<Value> items;
};

struct Tuple {
  std::vector<Value> items;
};

class Value {
 public:
  Value() = default;  // None
  Value(bool value) : what_(value) {}
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Value(Integer value) : what_(static_cast<std::int64_t>(value)) {
    SSD_EXPECT(std::in_range<std::int64_t>(value));
  }
  Value(double value) : what_(value) {}
  Value(std::string value) : what_(std::make_shared<const std::string>(std::move(value))) {}  // UTF-8
  Value(std::string_view value) : Value(std::string(value)) {}
  Value(const char* value) : Value(std::string(value)) {}
  Value(Bytes value) : what_(std::make_shared<const Bytes>(std::move(value))) {}
  Value(BigInteger value) : what_(std::make_shared<const BigInteger>(std::move(value))) {}
  Value(List value) : what_(std::make_shared<const List>(std::move(value))) {}
  Value(Tuple value) : what_(std::make_shared<const Tuple>(std::move(value))) {}
  Value(Dict value);
  Value(TensorValue value) : what_(std::make_shared<const TensorValue>(std::move(value))) {}
  // Containers that are shared already.
  Value(std::shared_ptr<const List> value) : what_(std::move(value)) {}
  Value(std::shared_ptr<const Tuple> value) : what_(std::move(value)) {}
  Value(std::shared_ptr<const Dict> value) : what_(std::move(value)) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(what_); }
  std::string_view kind_name() const;  // "None", "bool", "int", ..., "OrderedDict", "tensor": for messages

  // Null where the value is of another kind. T: bool, std::int64_t, double, std::string, Bytes, BigInteger,
  // List, Tuple, Dict, TensorValue. A bool is no integer here and an integer no double.
  template <class T>
  const T* get_if() const {
    if constexpr (std::same_as<T, bool> || std::same_as<T, std::int64_t> || std::same_as<T, double>) {
      return std::get_if<T>(&what_);
    } else {
      const auto* shared = std::get_if<std::shared_ptr<const T>>(&what_);
      return shared == nullptr ? nullptr : shared->get();
    }
  }

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const Bytes>, std::shared_ptr<const BigInteger>, std::shared_ptr<const List>,
               std::shared_ptr<const Tuple>, std::shared_ptr<const Dict>, std::shared_ptr<const TensorValue>>
      what_;
};

// A dict in the order of insertion. Keys are str or int.
class Dict {
 public:
  enum class Kind { plain, ordered, counter };
  using Key = std::variant<std::int64_t, std::string_view>;
  struct Entry {
    Value key;
    Value value;
  };

  explicit Dict(Kind kind = Kind::plain) : kind_(kind) {}

  // Replaces the value of a key that is there. Throws Error for a key that is neither str nor int.
  void set(Value key, Value value);
  const Value* find(const Key& key) const;  // null where the key is missing
  bool contains(const Key& key) const { return find(key) != nullptr; }

  Kind kind() const { return kind_; }
  void set_kind(Kind kind) { kind_ = kind; }
  std::size_t size() const { return entries_.size(); }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  Kind kind_;
  std::vector<Entry> entries_;
  std::unordered_map<Key, std::size_t> index_;  // its texts are views of the strings that entries_ share
};

std::string key_text(const Value& key);  // for messages and paths: the text, or the number in decimals

}  // namespace ssd
