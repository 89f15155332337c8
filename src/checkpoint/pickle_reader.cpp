#include "checkpoint/pickle_reader.hpp"

#include <iterator>
#include <unordered_map>
#include <utility>

#include "checkpoint/pickle_format.hpp"
#include "checkpoint/pickle_input.hpp"
#include "checkpoint/pickle_items.hpp"
#include "checkpoint/pickle_objects.hpp"
#include "core/utf8.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

using namespace pickle;

// The stack machine of a pickle.
class PickleReader {
 public:
  explicit PickleReader(std::span<const std::byte> bytes) : input_(bytes), objects_(bytes.size()) {}

  Pickle read() {
    read_protocol();
    while (step(static_cast<Opcode>(input_.number<std::uint8_t>()))) {
    }
    SSD_VALIDATE(stack_.size() == 1 && marks_.empty(), "the pickle ends with {} objects (1 expected)",
                 stack_.size());
    return {to_value(pop()), objects_.take_storages(), input_.position()};
  }

 private:
  void read_protocol() {
    SSD_VALIDATE(input_.number<std::uint8_t>() == static_cast<std::uint8_t>(Opcode::proto),
                 "the pickle does not begin with its protocol (2 and 3 are read)");
    const auto protocol = input_.number<std::uint8_t>();
    SSD_VALIDATE(protocol == 2 || protocol == 3,
                 "pickle protocol {} (2 and 3 are read; 2 is what torch.save writes by default)", protocol);
  }

  // Carries out one opcode; false after STOP.
  bool step(Opcode opcode) {
    switch (opcode) {
      case Opcode::stop:
        return false;
      case Opcode::mark:
        marks_.push_back(stack_.size());
        break;
      case Opcode::none:
        push(Value());
        break;
      case Opcode::new_true:
        push(Value(true));
        break;
      case Opcode::new_false:
        push(Value(false));
        break;
      case Opcode::binint:
        push(Value(input_.number<std::int32_t>()));
        break;
      case Opcode::binint1:
        push(Value(input_.number<std::uint8_t>()));
        break;
      case Opcode::binint2:
        push(Value(input_.number<std::uint16_t>()));
        break;
      case Opcode::long1:
        push_integer(input_.number<std::uint8_t>());
        break;
      case Opcode::long4:
        push_integer(input_.number<std::uint32_t>());
        break;
      case Opcode::binfloat:
        push(Value(input_.big_endian_double()));
        break;
      case Opcode::binunicode:
      case Opcode::binstring:
        push_text(input_.number<std::uint32_t>());
        break;
      case Opcode::short_binstring:
        push_text(input_.number<std::uint8_t>());
        break;
      case Opcode::binbytes:
        push_bytes(input_.number<std::uint32_t>());
        break;
      case Opcode::short_binbytes:
        push_bytes(input_.number<std::uint8_t>());
        break;
      case Opcode::empty_list:
        push_container(std::make_shared<OpenList>());
        break;
      case Opcode::append:
        append(take_last(1));
        break;
      case Opcode::appends:
        append(take_to_mark());
        break;
      case Opcode::empty_tuple:
        push_container(make_tuple({}));
        break;
      case Opcode::tuple:
        push_container(make_tuple(take_to_mark()));
        break;
      case Opcode::tuple1:
        push_container(make_tuple(take_last(1)));
        break;
      case Opcode::tuple2:
        push_container(make_tuple(take_last(2)));
        break;
      case Opcode::tuple3:
        push_container(make_tuple(take_last(3)));
        break;
      case Opcode::empty_dict:
        push_container(make_dict(Dict::Kind::plain));
        break;
      case Opcode::setitem:
        set_items(take_last(2));
        break;
      case Opcode::setitems:
        set_items(take_to_mark());
        break;
      case Opcode::global:
        push_global();
        break;
      case Opcode::reduce:
        reduce();
        break;
      case Opcode::build:
        build();
        break;
      case Opcode::binpersid:
        push(objects_.storage(pop()));
        break;
      case Opcode::binput:
        memo_[input_.number<std::uint8_t>()] = top();
        break;
      case Opcode::long_binput:
        memo_[input_.number<std::uint32_t>()] = top();
        break;
      case Opcode::binget:
        push_memo(input_.number<std::uint8_t>());
        break;
      case Opcode::long_binget:
        push_memo(input_.number<std::uint32_t>());
        break;
      default:
        throw Error(fmt::format("pickle opcode 0x{:02x} at byte {} is not among those read here",
                                static_cast<unsigned>(opcode), input_.position() - 1));
    }
    return true;
  }

  // The stack. Nothing reaches below the last mark.
  void push(Item item) { stack_.push_back(std::move(item)); }

  void push_container(Item container) {
    SSD_VALIDATE(++containers_ <= kMaxContainers, "the pickle makes more than {} containers", kMaxContainers);
    push(std::move(container));
  }

  void need(std::size_t count) const {
    const auto floor = marks_.empty() ? 0 : marks_.back();
    SSD_VALIDATE(stack_.size() - floor >= count, "the pickle takes from an empty stack (byte {})",
                 input_.position());
  }

  Item& top() {
    need(1);
    return stack_.back();
  }

  Item pop() {
    Item item = std::move(top());
    stack_.pop_back();
    return item;
  }

  std::vector<Item> take_from(std::size_t first) {
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(first);
    std::vector<Item> items(std::make_move_iterator(begin), std::make_move_iterator(stack_.end()));
    stack_.erase(begin, stack_.end());
    return items;
  }

  std::vector<Item> take_last(std::size_t count) {
    need(count);
    return take_from(stack_.size() - count);
  }

  std::vector<Item> take_to_mark() {
    SSD_VALIDATE(!marks_.empty(), "the pickle lacks a mark (byte {})", input_.position());
    const auto first = marks_.back();
    marks_.pop_back();
    return take_from(first);
  }

  void push_memo(std::uint32_t slot) {
    const auto found = memo_.find(slot);
    SSD_VALIDATE(found != memo_.end(), "the pickle reads memo slot {}, which is empty", slot);
    push(found->second);
  }

  void push_integer(std::uint32_t bytes) {
    constexpr std::uint32_t kMostBytes = 255;
    SSD_VALIDATE(bytes <= kMostBytes, "the pickle holds an integer of {} bytes (at most {})", bytes,
                 kMostBytes);
    const auto digits = input_.take(bytes);
    if (bytes > 8) return push(Value(BigInteger{std::string(digits)}));
    const bool negative = !digits.empty() && static_cast<signed char>(digits.back()) < 0;
    std::uint64_t bits = negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = digits.size(); i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(digits[i]);
    push(Value(static_cast<std::int64_t>(bits)));
  }

  void push_text(std::uint32_t bytes) {
    const auto text = input_.take(bytes);
    validate_utf8(text);
    push(Value(text));
  }

  void push_bytes(std::uint32_t bytes) { push(Value(Bytes{std::string(input_.take(bytes))})); }

  void append(const std::vector<Item>& items) {
    const auto* list = std::get_if<ListPtr>(&top());
    SSD_VALIDATE(list != nullptr, "the pickle appends to what is no list (byte {})", input_.position());
    pickle::append(**list, items);
  }

  void set_items(const std::vector<Item>& keys_and_values) {
    const auto* dict = std::get_if<DictPtr>(&top());
    SSD_VALIDATE(dict != nullptr, "the pickle sets an item of what is no dict (byte {})", input_.position());
    pickle::set_items(**dict, keys_and_values);
  }

  void push_global() {
    const auto module = input_.line();
    const auto name = input_.line();
    push(find_global(module, name));
  }

  void reduce() {
    const auto arguments = pop();
    const auto callee = pop();
    push_container(objects_.call(callee, arguments));  // an OrderedDict, a Counter, a tensor, bytes
  }

  void build() {
    const auto attributes = pop();
    check_attributes(top(), attributes);
  }

  PickleInput input_;
  ObjectBuilder objects_;
  std::vector<Item> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, Item> memo_;
  std::size_t containers_ = 0;
};

}  // namespace

Pickle read_pickle(std::span<const std::byte> bytes) {
  return PickleReader(bytes).read();
}

}  // namespace ssd
