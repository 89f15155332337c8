#include "checkpoint/value.hpp"

namespace ssd {
namespace {

Dict::Key key_of(const Value& key) {
  if (const auto* number = key.get_if<std::int64_t>()) return *number;
  const auto* text = key.get_if<std::string>();
  SSD_VALIDATE(text != nullptr, "a dict has a key of kind {} (str and int are read)", key.kind_name());
  return std::string_view(*text);
}

}  // namespace

Value::Value(Dict value) : what_(std::make_shared<const Dict>(std::move(value))) {}

std::string_view Value::kind_name() const {
  if (const auto* dict = get_if<Dict>()) {
    constexpr std::string_view kNames[] = {"dict", "OrderedDict", "Counter"};
    return kNames[static_cast<std::size_t>(dict->kind())];
  }
  constexpr std::string_view kNames[] = {
      "None", "bool",  "int",  "float", "str", "bytes", "int beyond 64 bits",
      "list", "tuple", "dict", "tensor"};
  return kNames[what_.index()];
}

void Dict::set(Value key, Value value) {
  const auto [place, inserted] = index_.try_emplace(key_of(key), entries_.size());
  if (inserted) {
    entries_.push_back({std::move(key), std::move(value)});
  } else {
    entries_[place->second].value = std::move(value);
  }
}

const Value* Dict::find(const Key& key) const {
  const auto place = index_.find(key);
  return place == index_.end() ? nullptr : &entries_[place->second].value;
}

std::string key_text(const Value& key) {
  if (const auto* number = key.get_if<std::int64_t>()) return fmt::format("{}", *number);
  const auto* text = key.get_if<std::string>();
  return text == nullptr ? std::string(key.kind_name()) : *text;
}

}  // namespace ssd
