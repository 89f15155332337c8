// What lies on the stack of a pickle while it is read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "checkpoint/value.hpp"

namespace ssd::pickle {

// The functions and classes that a pickle may call. None of them is looked up anywhere: each is a branch of
// ObjectBuilder::call().
enum class Callable {
  ordered_dict,
  counter,
  rebuild_tensor,
  rebuild_tensor_v2,
  rebuild_parameter,
  codecs_encode
};

struct StorageRef {
  std::size_t index;  // in ObjectBuilder's storages
};

// A list or dict may grow until it is put into another container. One that grew afterwards would allow cycles
// and escape the bound on depth; the pickles of trees never do it.
struct OpenList {
  std::shared_ptr<List> list = std::make_shared<List>();
  int depth = 1;
  bool placed = false;
};

struct OpenDict {
  std::shared_ptr<Dict> dict;
  int depth = 1;
  bool placed = false;
};

struct OpenTuple;

using ListPtr = std::shared_ptr<OpenList>;
using DictPtr = std::shared_ptr<OpenDict>;
using TuplePtr = std::shared_ptr<OpenTuple>;

// A value, or something that only has a meaning on the way to one. DType: a storage class.
using Item = std::variant<Value, Callable, DType, StorageRef, ListPtr, DictPtr, TuplePtr>;

struct OpenTuple {
  std::vector<Item> items;
  int depth = 1;
  std::optional<Value> value;  // made when it is first put into a list or dict, and then shared
};

Item make_dict(Dict::Kind kind);
Item make_tuple(std::vector<Item> items);
void append(OpenList& list, const std::vector<Item>& items);
void set_items(OpenDict& dict, const std::vector<Item>& keys_and_values);

// What the item is worth outside the stack. Throws Error for a function, class or storage.
Value to_value(const Item& item);

// Null where the item is something else.
template <class T>
const T* value_of(const Item& item) {
  const auto* value = std::get_if<Value>(&item);
  return value == nullptr ? nullptr : value->get_if<T>();
}
const std::vector<Item>* tuple_items(const Item& item);

}  // namespace ssd::pickle
