// The closed list of what a pickle may refer to and call, and the objects that come of it. Throws Error for
// all else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/pickle_items.hpp"
#include "checkpoint/pickle_reader.hpp"

namespace ssd::pickle {

// The class or function of a GLOBAL opcode.
Item find_global(std::string_view module, std::string_view name);

class ObjectBuilder {
 public:
  // pickle_bytes: the size of the pickle, which bounds what its calls may make.
  explicit ObjectBuilder(std::size_t pickle_bytes) : bytes_left_(pickle_bytes) {}

  Item call(const Item& callee, const Item& arguments);  // REDUCE
  Item storage(const Item& persistent_id);               // BINPERSID
  std::vector<NamedStorage> take_storages() { return std::move(storages_); }

 private:
  Item tensor(const std::vector<Item>& arguments, std::size_t fewest, std::size_t most) const;
  Item encoded(const std::vector<Item>& arguments);
  StorageRef storage_named(const std::string& key, DType dtype, std::int64_t elements);

  std::size_t bytes_left_;
  std::vector<NamedStorage> storages_;
  std::unordered_map<std::string, std::size_t> index_of_storage_;
};

// BUILD. The only attribute that is accepted is the _metadata of a state_dict: versions of its modules, which
// no module of this network needs. It is dropped.
void check_attributes(const Item& object, const Item& attributes);

}  // namespace ssd::pickle
