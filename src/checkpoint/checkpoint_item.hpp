// A value of a checkpoint file together with the way to it, so that what is missing or of the wrong kind is
// named: "checkpoint 'epoch_3.pt': 'optimizer/param_groups/0/lr' is missing". Cheap to copy. Texts, dicts and
// tensors that it gives back live as long as an item above them does. Every member that cannot give what is
// asked for throws Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/value.hpp"

namespace ssd {

class CheckpointItem {
 public:
  // source: the file's name for messages.
  CheckpointItem(std::string source, Value root) : source_(std::move(source)), value_(std::move(root)) {}

  Value value() const { return value_; }
  const std::string& source() const { return source_; }
  const std::string& path() const { return path_; }  // keys and indices joined by "/"; empty at the top

  // Of a dict: the value of a key, which is text or an integer.
  CheckpointItem at(const Dict::Key& key) const;
  std::optional<CheckpointItem> find(const Dict::Key& key) const;  // empty where the key is missing
  // Of a list or tuple: all its items.
  std::vector<CheckpointItem> items() const;

  bool is_none() const { return value_.is_none(); }
  std::int64_t integer() const;
  double number() const;  // of a float or an int
  const std::string& text() const;
  const Dict& dict() const;
  const TensorValue& tensor() const;

  // An Error that names file and path: "checkpoint 'x.pt': 'a/b' <problem>".
  Error error(const std::string& problem) const;

 private:
  CheckpointItem(std::string source, std::string path, Value value)
      : source_(std::move(source)), path_(std::move(path)), value_(std::move(value)) {}

  template <class T>
  const T& get(const char* expected) const;
  CheckpointItem below(const std::string& name, const Value& value) const;

  std::string source_;
  std::string path_;
  Value value_;
};

}  // namespace ssd
