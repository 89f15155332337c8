#include "checkpoint/pickle_reader.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>

#include "checkpoint/pickle_format.hpp"
#include "checkpoint/pickle_input.hpp"
#include "checkpoint/utf8.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

// The functions and classes that REDUCE may call. None of them is looked up anywhere: each is a branch of reduce().
enum class Callable { ordered_dict, counter, rebuild_tensor, rebuild_tensor_v2, rebuild_parameter, codecs_encode };

struct StorageRef {
  std::size_t index;  // in the pickle's storages
};

// A list or dict that may still grow: until it is put into another container. A container that grows afterwards would
// allow cycles and escape the bound on depth; pickles of trees never do it.
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

// What lies on the stack or in the memo: a value, or something that only has a meaning on the way to one (callables,
// storage classes, storages).
using Item = std::variant<Value, Callable, DType, StorageRef, std::shared_ptr<OpenList>, std::shared_ptr<OpenDict>,
                          std::shared_ptr<OpenTuple>>;

struct OpenTuple {
  std::vector<Item> items;
  int depth = 1;
  std::optional<Value> value;  // made when it is first put somewhere, and then shared
};

class PickleReader {
 public:
  explicit PickleReader(std::span<const std::byte> bytes) : input_(bytes) {}

  Pickle read() {
    read_protocol();
    while (step(static_cast<Opcode>(input_.number<std::uint8_t>()))) {
    }
    SSD_VALIDATE(stack_.size() == 1 && marks_.empty(), "the pickle ends with {} objects (1 expected)", stack_.size());
    pickle_.root = place(pop()).value;
    pickle_.consumed = input_.position();
    return std::move(pickle_);
  }

 private:
  struct Placed {
    Value value;
    int depth;
  };

  void read_protocol() {
    SSD_VALIDATE(input_.number<std::uint8_t>() == static_cast<std::uint8_t>(Opcode::proto),
                 "not a pickle of protocol 2 or 3 (first byte)");
    const auto protocol = input_.number<std::uint8_t>();
    SSD_VALIDATE(protocol == 2 || protocol == 3,
                 "pickle protocol {} (2 and 3 are read; 2 is what torch.save writes by default)", protocol);
  }

  // Carries out one opcode; false after STOP.
  bool step(Opcode opcode) {
    switch (opcode) {
      case Opcode::stop: return false;
      case Opcode::mark: marks_.push_back(stack_.size()); break;
      case Opcode::none: push(Value()); break;
      case Opcode::new_true: push(Value(true)); break;
      case Opcode::new_false: push(Value(false)); break;
      case Opcode::binint: push(Value(input_.number<std::int32_t>())); break;
      case Opcode::binint1: push(Value(input_.number<std::uint8_t>())); break;
      case Opcode::binint2: push(Value(input_.number<std::uint16_t>())); break;
      case Opcode::long1: push_integer(input_.number<std::uint8_t>()); break;
      case Opcode::long4: push_integer(input_.number<std::uint32_t>()); break;
      case Opcode::binfloat: push(Value(input_.big_endian_double())); break;
      case Opcode::binunicode:
      case Opcode::binstring: push_text(input_.number<std::uint32_t>()); break;
      case Opcode::short_binstring: push_text(input_.number<std::uint8_t>()); break;
      case Opcode::binbytes: push_bytes(input_.number<std::uint32_t>()); break;
      case Opcode::short_binbytes: push_bytes(input_.number<std::uint8_t>()); break;
      case Opcode::empty_list: push(std::make_shared<OpenList>()); break;
      case Opcode::append: append(take_last(1)); break;
      case Opcode::appends: append(take_to_mark()); break;
      case Opcode::empty_tuple: push_tuple({}); break;
      case Opcode::tuple: push_tuple(take_to_mark()); break;
      case Opcode::tuple1: push_tuple(take_last(1)); break;
      case Opcode::tuple2: push_tuple(take_last(2)); break;
      case Opcode::tuple3: push_tuple(take_last(3)); break;
      case Opcode::empty_dict: push_dict(Dict::Kind::plain); break;
      case Opcode::setitem: set_items(take_last(2)); break;
      case Opcode::setitems: set_items(take_to_mark()); break;
      case Opcode::global: push_global(); break;
      case Opcode::reduce: reduce(); break;
      case Opcode::build: build(); break;
      case Opcode::binpersid: push_storage(); break;
      case Opcode::binput: memo_[input_.number<std::uint8_t>()] = top(); break;
      case Opcode::long_binput: memo_[input_.number<std::uint32_t>()] = top(); break;
      case Opcode::binget: push_memo(input_.number<std::uint8_t>()); break;
      case Opcode::long_binget: push_memo(input_.number<std::uint32_t>()); break;
      default:
        throw Error(fmt::format("pickle opcode 0x{:02x} at byte {} is not among those read here",
                                static_cast<unsigned>(opcode), input_.position() - 1));
    }
    return true;
  }

  // The stack. Nothing reaches below the last mark.
  void push(Item item) { stack_.push_back(std::move(item)); }

  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Item& top() {
    SSD_VALIDATE(stack_.size() > floor(), "the pickle takes from an empty stack (byte {})", input_.position());
    return stack_.back();
  }

  Item pop() {
    Item item = std::move(top());
    stack_.pop_back();
    return item;
  }

  std::vector<Item> take_from(std::size_t first) {
    std::vector<Item> items(std::make_move_iterator(stack_.begin() + static_cast<std::ptrdiff_t>(first)),
                            std::make_move_iterator(stack_.end()));
    stack_.resize(first);
    return items;
  }

  std::vector<Item> take_last(std::size_t count) {
    SSD_VALIDATE(stack_.size() - floor() >= count, "the pickle takes from an empty stack (byte {})",
                 input_.position());
    return take_from(stack_.size() - count);
  }

  std::vector<Item> take_to_mark() {
    SSD_VALIDATE(!marks_.empty(), "the pickle lacks a mark (byte {})", input_.position());
    const auto first = marks_.back();
    marks_.pop_back();
    return take_from(first);
  }

  // What an item is worth inside a container.
  Placed place(const Item& item) {
    if (const auto* value = std::get_if<Value>(&item)) return {*value, 0};
    if (const auto* list = std::get_if<std::shared_ptr<OpenList>>(&item)) {
      (*list)->placed = true;
      return {Value((*list)->list), (*list)->depth};
    }
    if (const auto* dict = std::get_if<std::shared_ptr<OpenDict>>(&item)) {
      (*dict)->placed = true;
      return {Value((*dict)->dict), (*dict)->depth};
    }
    const auto* tuple = std::get_if<std::shared_ptr<OpenTuple>>(&item);
    SSD_VALIDATE(tuple != nullptr, "the pickle holds a function, class or storage as a value");
    if (!(*tuple)->value) {
      Tuple made;
      for (const auto& inner : (*tuple)->items) made.items.push_back(place(inner).value);
      (*tuple)->value = Value(std::move(made));
    }
    return {*(*tuple)->value, (*tuple)->depth};
  }

  static int deeper(int depth, int child) {
    SSD_VALIDATE(child < kMaxDepth, "the pickle nests containers deeper than {}", kMaxDepth);
    return std::max(depth, child + 1);
  }

  void push_memo(std::uint32_t slot) {
    const auto found = memo_.find(slot);
    SSD_VALIDATE(found != memo_.end(), "the pickle reads memo slot {}, which is empty", slot);
    push(found->second);
  }

  void push_integer(std::uint32_t bytes) {
    constexpr std::uint32_t kMostBytes = 255;
    SSD_VALIDATE(bytes <= kMostBytes, "the pickle holds an integer of {} bytes (at most {})", bytes, kMostBytes);
    const auto digits = input_.take(bytes);
    if (bytes > 8) return push(Value(BigInteger{std::string(digits)}));
    std::uint64_t bits = !digits.empty() && digits.back() < 0 ? ~std::uint64_t{0} : 0;  // the sign
    for (std::size_t i = digits.size(); i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(digits[i]);
    push(Value(static_cast<std::int64_t>(bits)));
  }

  void push_text(std::uint32_t bytes) {
    const auto text = input_.take(bytes);
    validate_utf8(text);
    push(Value(text));
  }

  void push_bytes(std::uint32_t bytes) { push(Value(Bytes{std::string(input_.take(bytes))})); }

  void push_tuple(std::vector<Item> items) {
    auto tuple = std::make_shared<OpenTuple>();
    for (const auto& item : items) tuple->depth = deeper(tuple->depth, enclose(item));
    tuple->items = std::move(items);
    push(std::move(tuple));
  }

  // Depth of an item that a tuple takes in; it cannot grow from here on.
  static int enclose(const Item& item) {
    if (const auto* list = std::get_if<std::shared_ptr<OpenList>>(&item)) {
      (*list)->placed = true;
      return (*list)->depth;
    }
    if (const auto* dict = std::get_if<std::shared_ptr<OpenDict>>(&item)) {
      (*dict)->placed = true;
      return (*dict)->depth;
    }
    const auto* tuple = std::get_if<std::shared_ptr<OpenTuple>>(&item);
    return tuple == nullptr ? 0 : (*tuple)->depth;
  }

  void push_dict(Dict::Kind kind) {
    push(std::make_shared<OpenDict>(OpenDict{std::make_shared<Dict>(kind)}));
  }

  void append(std::vector<Item> items) {
    auto* list = std::get_if<std::shared_ptr<OpenList>>(&top());
    SSD_VALIDATE(list != nullptr && !(*list)->placed, "the pickle appends to what is no list, or to one inside itself");
    for (const auto& item : items) {
      auto placed = place(item);
      SSD_VALIDATE(!(*list)->placed, "the pickle puts a list into itself");
      (*list)->depth = deeper((*list)->depth, placed.depth);
      (*list)->list->items.push_back(std::move(placed.value));
    }
  }

  void set_items(std::vector<Item> items) {
    auto* dict = std::get_if<std::shared_ptr<OpenDict>>(&top());
    SSD_VALIDATE(dict != nullptr && !(*dict)->placed, "the pickle sets items of what is no dict, or of one inside itself");
    SSD_VALIDATE(items.size() % 2 == 0, "the pickle sets a dict's keys and values from an odd number of objects");
    for (std::size_t i = 0; i < items.size(); i += 2) {
      auto key = place(items[i]);
      auto value = place(items[i + 1]);
      SSD_VALIDATE(!(*dict)->placed, "the pickle puts a dict into itself");
      (*dict)->depth = deeper((*dict)->depth, value.depth);
      (*dict)->dict->set(std::move(key.value), std::move(value.value));
    }
  }

  void push_global() {
    const auto module = input_.line();
    const auto name = input_.line();
    if (module == "torch") {
      if (const auto dtype = dtype_of_storage_class(name)) return push(*dtype);
    }
    constexpr std::pair<std::pair<std::string_view, std::string_view>, Callable> kCallables[] = {
        {{"collections", "OrderedDict"}, Callable::ordered_dict},
        {{"collections", "Counter"}, Callable::counter},
        {{"torch._utils", "_rebuild_tensor"}, Callable::rebuild_tensor},
        {{"torch._utils", "_rebuild_tensor_v2"}, Callable::rebuild_tensor_v2},
        {{"torch._utils", "_rebuild_parameter"}, Callable::rebuild_parameter},
        {{"_codecs", "encode"}, Callable::codecs_encode},
    };
    for (const auto& [full_name, callable] : kCallables) {
      if (full_name == std::pair(module, name)) return push(callable);
    }
    throw Error(fmt::format("it refers to {}.{}, which is not among the classes read here and is never run; "
                            "save plain values and tensors only",
                            printable(module), printable(name)));
  }

  void reduce() {
    const auto arguments = pop();
    const auto callee = pop();
    const auto* callable = std::get_if<Callable>(&callee);
    const auto* tuple = std::get_if<std::shared_ptr<OpenTuple>>(&arguments);
    SSD_VALIDATE(callable != nullptr && tuple != nullptr, "the pickle calls what is no function read here (byte {})",
                 input_.position());
    const auto& items = (*tuple)->items;
    switch (*callable) {
      case Callable::ordered_dict:
        SSD_VALIDATE(items.empty(), "an OrderedDict is made from {} arguments (0 expected)", items.size());
        return push_dict(Dict::Kind::ordered);
      case Callable::counter: return push_counter(items);
      case Callable::rebuild_tensor: return push_tensor(items, 4, 4);
      case Callable::rebuild_tensor_v2: return push_tensor(items, 6, 7);
      case Callable::rebuild_parameter:
        SSD_VALIDATE(items.size() == 3 && is_tensor(items[0]), "a parameter is not made from a tensor");
        return push(items[0]);
      case Callable::codecs_encode: return push_encoded(items);
    }
  }

  static bool is_tensor(const Item& item) {
    const auto* value = std::get_if<Value>(&item);
    return value != nullptr && value->get_if<TensorValue>() != nullptr;
  }

  // A Counter is made from a dict that nothing else holds; so the dict itself becomes the Counter.
  void push_counter(const std::vector<Item>& items) {
    const auto* dict = items.size() == 1 ? std::get_if<std::shared_ptr<OpenDict>>(&items[0]) : nullptr;
    SSD_VALIDATE(dict != nullptr && (*dict)->dict->kind() == Dict::Kind::plain, "a Counter is not made from a dict");
    (*dict)->dict->set_kind(Dict::Kind::counter);
    push(*dict);
  }

  void push_encoded(const std::vector<Item>& items) {
    const auto* text = items.size() == 2 ? text_of(items[0]) : nullptr;
    const auto* encoding = items.size() == 2 ? text_of(items[1]) : nullptr;
    SSD_VALIDATE(text != nullptr && encoding != nullptr && *encoding == "latin1", "bytes are not written as latin1 text");
    push(Value(Bytes{utf8_to_latin1(*text)}));
  }

  static const std::string* text_of(const Item& item) {
    const auto* value = std::get_if<Value>(&item);
    return value == nullptr ? nullptr : value->get_if<std::string>();
  }

  static std::int64_t integer_of(const Item& item, const char* what) {
    const auto* value = std::get_if<Value>(&item);
    const auto* number = value == nullptr ? nullptr : value->get_if<std::int64_t>();
    SSD_VALIDATE(number != nullptr, "a tensor's {} is no integer of 64 bits", what);
    return *number;
  }

  static std::vector<std::int64_t> integers_of(const Item& item, const char* what) {
    const auto* tuple = std::get_if<std::shared_ptr<OpenTuple>>(&item);
    SSD_VALIDATE(tuple != nullptr && (*tuple)->items.size() <= 64, "a tensor's {} is no tuple of at most 64 integers",
                 what);
    std::vector<std::int64_t> numbers;
    for (const auto& inner : (*tuple)->items) numbers.push_back(integer_of(inner, what));
    return numbers;
  }

  // ("storage", class, key, location, elements), and None in the old format. The location ("cpu", "cuda:0") is where
  // the tensor lived; all are read into memory.
  void push_storage() {
    const auto item = pop();
    const auto* tuple = std::get_if<std::shared_ptr<OpenTuple>>(&item);
    SSD_VALIDATE(tuple != nullptr, "a storage is not named by a tuple");
    const auto& items = (*tuple)->items;
    SSD_VALIDATE(items.size() == 5 || items.size() == 6, "a storage is named by {} objects (5 expected)", items.size());
    const auto* tag = text_of(items[0]);
    const auto* dtype = std::get_if<DType>(&items[1]);
    const auto* key = text_of(items[2]);
    SSD_VALIDATE(tag != nullptr && *tag == "storage" && dtype != nullptr && key != nullptr && text_of(items[3]) != nullptr,
                 "a storage is not named as torch.save does it");
    const auto* view = items.size() == 6 ? std::get_if<Value>(&items[5]) : nullptr;
    SSD_VALIDATE(items.size() == 5 || (view != nullptr && view->is_none()),
                 "storage '{}' is a view of another storage, as very old torch had it", printable(*key));
    push(storage_named(*key, *dtype, integer_of(items[4], "storage size")));
  }

  StorageRef storage_named(const std::string& key, DType dtype, std::int64_t elements) {
    constexpr std::int64_t kMostElements = std::numeric_limits<std::int64_t>::max() / 8;
    SSD_VALIDATE(elements >= 0 && elements <= kMostElements, "storage '{}' has {} elements", printable(key), elements);
    const auto [found, inserted] = storage_index_.try_emplace(key, pickle_.storages.size());
    if (inserted) {
      pickle_.storages.push_back({key, dtype, static_cast<std::uint64_t>(elements), std::make_shared<Storage>()});
    }
    const auto& known = pickle_.storages[found->second];
    SSD_VALIDATE(known.dtype == dtype && known.elements == static_cast<std::uint64_t>(elements),
                 "storage '{}' is named with two types or sizes", printable(key));
    return {found->second};
  }

  // (storage, offset, sizes, strides, requires_grad, hooks, metadata): the first four are what a tensor is.
  void push_tensor(const std::vector<Item>& items, std::size_t fewest, std::size_t most) {
    SSD_VALIDATE(items.size() >= fewest && items.size() <= most, "a tensor is made from {} arguments ({} expected)",
                 items.size(), fewest);
    const auto* storage = std::get_if<StorageRef>(&items[0]);
    SSD_VALIDATE(storage != nullptr, "a tensor has no storage");
    if (items.size() == 7) {  // marks of a conjugated or negated view, which would change the values
      const auto* metadata = std::get_if<Value>(&items[6]);
      SSD_VALIDATE(metadata != nullptr && metadata->is_none(), "a tensor carries metadata (a lazily changed view)");
    }
    const auto& named = pickle_.storages[storage->index];
    TensorValue tensor{named.dtype, integers_of(items[2], "size"), integers_of(items[3], "stride"),
                       integer_of(items[1], "offset"), named.storage};
    validate_view(tensor, named.elements);
    push(Value(std::move(tensor)));
  }

  // The only attribute that is accepted is the _metadata of a state_dict: versions of its modules, which no module of
  // this network needs. It is dropped.
  void build() {
    const auto state = pop();
    const auto* object = std::get_if<std::shared_ptr<OpenDict>>(&top());
    const auto* attributes = std::get_if<std::shared_ptr<OpenDict>>(&state);
    SSD_VALIDATE(object != nullptr && (*object)->dict->kind() == Dict::Kind::ordered && attributes != nullptr &&
                     (*attributes)->dict->size() == 1 && (*attributes)->dict->contains("_metadata"),
                 "it sets attributes of an object (only _metadata of an OrderedDict is read)");
  }

  PickleInput input_;
  Pickle pickle_;
  std::vector<Item> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, Item> memo_;
  std::unordered_map<std::string, std::size_t> storage_index_;
};

}  // namespace

Pickle read_pickle(std::span<const std::byte> bytes) { return PickleReader(bytes).read(); }

}  // namespace ssd
