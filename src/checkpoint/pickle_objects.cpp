#include "checkpoint/pickle_objects.hpp"

#include <limits>
#include <utility>

#include "core/utf8.hpp"
#include "core/error.hpp"

namespace ssd::pickle {
namespace {

struct Global {
  std::string_view module;
  std::string_view name;
  Callable callable;
};

constexpr Global kGlobals[] = {
    {"collections", "OrderedDict", Callable::ordered_dict},
    {"collections", "Counter", Callable::counter},
    {"torch._utils", "_rebuild_tensor", Callable::rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v2", Callable::rebuild_tensor_v2},
    {"torch._utils", "_rebuild_parameter", Callable::rebuild_parameter},
    {"_codecs", "encode", Callable::codecs_encode},
};

constexpr std::size_t kMostDimensions = 16;

std::int64_t integer_of(const Item& item, const char* what) {
  const auto* number = value_of<std::int64_t>(item);
  SSD_VALIDATE(number != nullptr, "a tensor's {} is no integer of 64 bits", what);
  return *number;
}

std::vector<std::int64_t> integers_of(const Item& item, const char* what) {
  const auto* items = tuple_items(item);
  SSD_VALIDATE(items != nullptr && items->size() <= kMostDimensions,
               "a tensor's {} is no tuple of at most {} integers", what, kMostDimensions);
  std::vector<std::int64_t> numbers;
  for (const auto& inner : *items) numbers.push_back(integer_of(inner, what));
  return numbers;
}

bool is_none(const Item& item) {
  const auto* value = std::get_if<Value>(&item);
  return value != nullptr && value->is_none();
}

// Python makes a dict for the call alone, so that dict itself becomes the Counter: nothing is copied.
Item counter(const std::vector<Item>& arguments) {
  const auto* dict = arguments.size() == 1 ? std::get_if<DictPtr>(&arguments[0]) : nullptr;
  SSD_VALIDATE(dict != nullptr && (*dict)->dict->kind() == Dict::Kind::plain,
               "a Counter is not made from a dict");
  (*dict)->dict->set_kind(Dict::Kind::counter);
  return *dict;
}

}  // namespace

Item find_global(std::string_view module, std::string_view name) {
  if (module == "torch") {
    if (const auto dtype = dtype_of_storage_class(name)) return *dtype;
  }
  for (const auto& global : kGlobals) {
    if (global.module == module && global.name == name) return global.callable;
  }
  throw Error(fmt::format(
      "it refers to {}.{}, which is not read here and never run; save plain values and tensors only",
      printable(module), printable(name)));
}

Item ObjectBuilder::call(const Item& callee, const Item& arguments) {
  const auto* callable = std::get_if<Callable>(&callee);
  const auto* items = tuple_items(arguments);
  SSD_VALIDATE(callable != nullptr && items != nullptr, "the pickle calls what is no function");
  switch (*callable) {
    case Callable::ordered_dict:
      SSD_VALIDATE(items->empty(), "an OrderedDict is made from {} arguments (0 expected)", items->size());
      return make_dict(Dict::Kind::ordered);
    case Callable::counter:
      return counter(*items);
    case Callable::rebuild_tensor:
      return tensor(*items, 4, 4);
    case Callable::rebuild_tensor_v2:
      return tensor(*items, 6, 7);
    case Callable::rebuild_parameter:
      SSD_VALIDATE(items->size() == 3 && value_of<TensorValue>((*items)[0]) != nullptr,
                   "a parameter is not made from a tensor");
      return (*items)[0];
    case Callable::codecs_encode:
      return encoded(*items);
  }
  throw Error("the pickle calls what is no function");
}

// Protocol 2 writes bytes as a text that is to be encoded in latin1.
Item ObjectBuilder::encoded(const std::vector<Item>& arguments) {
  const auto* text = arguments.size() == 2 ? value_of<std::string>(arguments[0]) : nullptr;
  const auto* encoding = arguments.size() == 2 ? value_of<std::string>(arguments[1]) : nullptr;
  SSD_VALIDATE(text != nullptr && encoding != nullptr && *encoding == "latin1",
               "bytes are not written as latin1 text");
  // A text of the pickle could be encoded over and over again.
  SSD_VALIDATE(text->size() <= bytes_left_, "the pickle's bytes objects are larger than the pickle");
  bytes_left_ -= text->size();
  return Value(Bytes{utf8_to_latin1(*text)});
}

// ("storage", class, key, location, elements), and None in the old format. The location ("cpu", "cuda:0") is
// where the tensor lived; all are read into memory.
Item ObjectBuilder::storage(const Item& persistent_id) {
  const auto* items = tuple_items(persistent_id);
  SSD_VALIDATE(items != nullptr && (items->size() == 5 || items->size() == 6),
               "a storage is not named by 5 objects");
  const auto* tag = value_of<std::string>((*items)[0]);
  const auto* dtype = std::get_if<DType>(&(*items)[1]);
  const auto* key = value_of<std::string>((*items)[2]);
  const auto* location = value_of<std::string>((*items)[3]);
  SSD_VALIDATE(
      tag != nullptr && *tag == "storage" && dtype != nullptr && key != nullptr && location != nullptr,
      "a storage is not named as torch.save does it");
  SSD_VALIDATE(items->size() == 5 || is_none((*items)[5]),
               "storage '{}' is a view of another storage, as very old torch had it", printable(*key));
  return storage_named(*key, *dtype, integer_of((*items)[4], "storage size"));
}

StorageRef ObjectBuilder::storage_named(const std::string& key, DType dtype, std::int64_t elements) {
  constexpr std::int64_t kMostElements = std::numeric_limits<std::int64_t>::max() / 8;  // bytes fit 64 bits
  SSD_VALIDATE(elements >= 0 && elements <= kMostElements, "storage '{}' has {} elements", printable(key),
               elements);
  const auto count = static_cast<std::uint64_t>(elements);
  const auto [found, inserted] = index_of_storage_.try_emplace(key, storages_.size());
  if (inserted) storages_.push_back({key, dtype, count, std::make_shared<Storage>()});
  const auto& known = storages_[found->second];
  SSD_VALIDATE(known.dtype == dtype && known.elements == count,
               "storage '{}' is named with two types or sizes", printable(key));
  return {found->second};
}

// (storage, offset, sizes, strides, requires_grad, hooks, metadata): the first four are what a tensor is.
Item ObjectBuilder::tensor(const std::vector<Item>& arguments, std::size_t fewest, std::size_t most) const {
  SSD_VALIDATE(arguments.size() >= fewest && arguments.size() <= most,
               "a tensor is made from {} arguments ({} expected)", arguments.size(), fewest);
  const auto* storage = std::get_if<StorageRef>(&arguments[0]);
  SSD_VALIDATE(storage != nullptr, "a tensor has no storage");
  // The metadata mark a view that is conjugated or negated when it is used: other values than those stored.
  SSD_VALIDATE(arguments.size() < 7 || is_none(arguments[6]),
               "a tensor carries metadata (a lazily changed view)");
  const auto& named = storages_[storage->index];
  TensorValue made{named.dtype, integers_of(arguments[2], "size"), integers_of(arguments[3], "stride"),
                   integer_of(arguments[1], "offset"), named.storage};
  validate_view(made, named.elements);
  return Value(std::move(made));
}

void check_attributes(const Item& object, const Item& attributes) {
  const auto* dict = std::get_if<DictPtr>(&object);
  const auto* state = std::get_if<DictPtr>(&attributes);
  SSD_VALIDATE(dict != nullptr && (*dict)->dict->kind() == Dict::Kind::ordered && state != nullptr &&
                   (*state)->dict->size() == 1 && (*state)->dict->contains("_metadata"),
               "it sets attributes of an object (only _metadata of an OrderedDict is read)");
}

}  // namespace ssd::pickle
