#include "checkpoint/pickle_items.hpp"

#include <algorithm>
#include <utility>

#include "checkpoint/pickle_format.hpp"
#include "core/error.hpp"

namespace ssd::pickle {
namespace {

// The depth of an item that a container takes in; the item cannot grow from here on.
int enclose(const Item& item) {
  if (const auto* list = std::get_if<ListPtr>(&item)) {
    (*list)->placed = true;
    return (*list)->depth;
  }
  if (const auto* dict = std::get_if<DictPtr>(&item)) {
    (*dict)->placed = true;
    return (*dict)->depth;
  }
  const auto* tuple = std::get_if<TuplePtr>(&item);
  return tuple == nullptr ? 0 : (*tuple)->depth;
}

int deeper(int depth, int child) {
  SSD_VALIDATE(child < kMaxDepth, "the pickle nests containers deeper than {}", kMaxDepth);
  return std::max(depth, child + 1);
}

}  // namespace

Item make_dict(Dict::Kind kind) {
  return std::make_shared<OpenDict>(OpenDict{std::make_shared<Dict>(kind)});
}

Item make_tuple(std::vector<Item> items) {
  auto tuple = std::make_shared<OpenTuple>();
  for (const auto& item : items) tuple->depth = deeper(tuple->depth, enclose(item));
  tuple->items = std::move(items);
  return tuple;
}

void append(OpenList& list, const std::vector<Item>& items) {
  for (const auto& item : items) {
    list.depth = deeper(list.depth, enclose(item));
    SSD_VALIDATE(!list.placed, "the pickle changes a list that lies in another, or in itself");
    list.list->items.push_back(to_value(item));
  }
}

void set_items(OpenDict& dict, const std::vector<Item>& keys_and_values) {
  SSD_VALIDATE(keys_and_values.size() % 2 == 0,
               "the pickle makes a dict from an odd number of keys and values");
  for (std::size_t i = 0; i < keys_and_values.size(); i += 2) {
    dict.depth = deeper(dict.depth, enclose(keys_and_values[i + 1]));
    SSD_VALIDATE(!dict.placed, "the pickle changes a dict that lies in another, or in itself");
    dict.dict->set(to_value(keys_and_values[i]), to_value(keys_and_values[i + 1]));
  }
}

Value to_value(const Item& item) {
  if (const auto* value = std::get_if<Value>(&item)) return *value;
  if (const auto* list = std::get_if<ListPtr>(&item)) return Value((*list)->list);
  if (const auto* dict = std::get_if<DictPtr>(&item)) return Value((*dict)->dict);
  const auto* tuple = std::get_if<TuplePtr>(&item);
  SSD_VALIDATE(tuple != nullptr, "the pickle holds a function, class or storage as a value");
  if (!(*tuple)->value) {
    Tuple made;
    for (const auto& inner : (*tuple)->items) made.items.push_back(to_value(inner));
    (*tuple)->value = Value(std::move(made));
  }
  return *(*tuple)->value;
}

const std::vector<Item>* tuple_items(const Item& item) {
  const auto* tuple = std::get_if<TuplePtr>(&item);
  return tuple == nullptr ? nullptr : &(*tuple)->items;
}

}  // namespace ssd::pickle
