#include "checkpoint/checkpoint_item.hpp"

#include "core/utf8.hpp"

namespace ssd {
namespace {

std::string name_of(const Dict::Key& key) {
  const auto* number = std::get_if<std::int64_t>(&key);
  return number != nullptr ? fmt::format("{}", *number) : std::string(std::get<std::string_view>(key));
}

}  // namespace

Error CheckpointItem::error(const std::string& problem) const {
  const auto where =
      path_.empty() ? std::string("the object in the file") : "'" + printable(path_, 200) + "'";
  return Error(fmt::format("checkpoint '{}': {} {}", source_, where, problem));
}

CheckpointItem CheckpointItem::below(const std::string& name, const Value& value) const {
  return {source_, path_.empty() ? name : path_ + "/" + name, value};
}

template <class T>
const T& CheckpointItem::get(const char* expected) const {
  const auto* found = value_.get_if<T>();
  if (found == nullptr) throw error(fmt::format("is of kind {}, {} expected", value_.kind_name(), expected));
  return *found;
}

std::optional<CheckpointItem> CheckpointItem::find(const Dict::Key& key) const {
  const auto* found = dict().find(key);
  if (found == nullptr) return std::nullopt;
  return below(name_of(key), *found);
}

CheckpointItem CheckpointItem::at(const Dict::Key& key) const {
  auto found = find(key);
  if (!found) throw below(name_of(key), Value()).error("is missing");
  return *std::move(found);
}

std::vector<CheckpointItem> CheckpointItem::items() const {
  const auto* tuple = value_.get_if<Tuple>();
  const auto& values = tuple != nullptr ? tuple->items : get<List>("list").items;
  std::vector<CheckpointItem> all;
  for (std::size_t i = 0; i < values.size(); ++i) all.push_back(below(fmt::format("{}", i), values[i]));
  return all;
}

std::int64_t CheckpointItem::integer() const {
  return get<std::int64_t>("int");
}
const std::string& CheckpointItem::text() const {
  return get<std::string>("str");
}
const Dict& CheckpointItem::dict() const {
  return get<Dict>("dict");
}
const TensorValue& CheckpointItem::tensor() const {
  return get<TensorValue>("tensor");
}

double CheckpointItem::number() const {
  if (const auto* whole = value_.get_if<std::int64_t>()) return static_cast<double>(*whole);
  return get<double>("float");
}

}  // namespace ssd
