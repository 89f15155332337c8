#include "checkpoint/legacy_reader.hpp"

#include <algorithm>
#include <unordered_map>

#include "checkpoint/little_endian.hpp"
#include "checkpoint/pickle_format.hpp"
#include "checkpoint/pickle_reader.hpp"
#include "core/utf8.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

// torch/serialization.py: MAGIC_NUMBER 0x1950a86a20f9469cfc6c and PROTOCOL_VERSION 1001.
constexpr std::string_view kMagicNumber("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr std::int64_t kProtocolVersion = 1001;

// The pickles of the file's head, one after the other.
class PickleSequence {
 public:
  explicit PickleSequence(const ByteSource& source)
      : head_(source.read(0, std::min<std::uint64_t>(source.size(), kMaxPickleBytes))) {}

  Pickle next() {
    auto pickle = read_pickle(std::span<const std::byte>(head_).subspan(position_));
    position_ += pickle.consumed;
    return pickle;
  }

  std::uint64_t position() const { return position_; }

 private:
  std::vector<std::byte> head_;
  std::size_t position_ = 0;
};

void check_machine(const Value& value) {
  const auto* facts = value.get_if<Dict>();
  const auto* little_endian = facts == nullptr ? nullptr : facts->find("little_endian");
  const auto* flag = little_endian == nullptr ? nullptr : little_endian->get_if<bool>();
  SSD_VALIDATE(flag != nullptr, "the old format's facts of the machine are damaged");
  SSD_VALIDATE(*flag, "it was written on a big-endian machine; only little-endian files are read");
}

// The keys of the storages in the order of the file: those that the object names, each once.
std::vector<NamedStorage*> storages_in_order(const Value& keys, std::vector<NamedStorage>& storages) {
  std::unordered_map<std::string_view, NamedStorage*> by_key;
  for (auto& storage : storages) by_key.emplace(storage.key, &storage);
  const auto* list = keys.get_if<List>();
  SSD_VALIDATE(list != nullptr && list->items.size() == storages.size(),
               "the old format's list of storages does not fit its {} storages", storages.size());
  std::vector<NamedStorage*> order;
  for (const auto& key : list->items) {
    const auto* text = key.get_if<std::string>();
    auto node = text == nullptr ? decltype(by_key)::node_type() : by_key.extract(*text);
    SSD_VALIDATE(!node.empty(),
                 "the old format's list of storages names '{}', which no tensor uses or which is there twice",
                 printable(key_text(key)));
    order.push_back(node.mapped());
  }
  return order;
}

}  // namespace

Value read_legacy(const ByteSource& source) {
  PickleSequence pickles(source);
  const auto magic = pickles.next();
  const auto* number = magic.root.get_if<BigInteger>();
  SSD_VALIDATE(number != nullptr && number->little_endian == kMagicNumber,
               "it begins as a pickle but not with the magic number of torch.save");
  const auto version = pickles.next();
  const auto* protocol = version.root.get_if<std::int64_t>();
  SSD_VALIDATE(protocol != nullptr && *protocol == kProtocolVersion,
               "the old format has a version other than {}", kProtocolVersion);
  check_machine(pickles.next().root);
  auto object = pickles.next();
  const auto keys = pickles.next();
  auto position = pickles.position();
  for (auto* storage : storages_in_order(keys.root, object.storages)) {
    const auto count = load_little_endian<std::int64_t>(source.read(position, 8), 0);
    SSD_VALIDATE(count >= 0 && static_cast<std::uint64_t>(count) == storage->elements,
                 "storage '{}' has {} elements in front of its data, {} expected", printable(storage->key),
                 count, storage->elements);
    *storage->storage = *make_storage(source.read(position + 8, storage->bytes()));
    position += 8 + storage->bytes();
  }
  SSD_VALIDATE(position == source.size(), "{} bytes follow the last storage", source.size() - position);
  return object.root;
}

}  // namespace ssd
