#include "checkpoint/pickle_writer.hpp"

#include <bit>
#include <limits>
#include <unordered_map>

#include "checkpoint/little_endian.hpp"
#include "checkpoint/pickle_format.hpp"
#include "core/utf8.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

class PickleWriter {
 public:
  WrittenPickle write(const Value& root) {
    put(Opcode::proto);
    append_little_endian(out(), std::uint8_t{2});
    put_value(root, 0);
    put(Opcode::stop);
    SSD_EXPECT(out().size() <= kMaxPickleBytes);
    return std::move(written_);
  }

 private:
  std::string& out() { return written_.bytes; }
  void put(Opcode opcode) { out().push_back(static_cast<char>(opcode)); }

  // depth: the number of containers around it.
  void put_value(const Value& value, int depth) {
    if (value.is_none()) return put(Opcode::none);
    if (const auto* flag = value.get_if<bool>()) return put(*flag ? Opcode::new_true : Opcode::new_false);
    if (const auto* number = value.get_if<std::int64_t>()) return put_integer(*number);
    if (const auto* number = value.get_if<double>()) return put_double(*number);
    if (const auto* text = value.get_if<std::string>()) return put_text(*text);
    if (const auto* bytes = value.get_if<Bytes>()) return put_bytes(*bytes);
    if (const auto* number = value.get_if<BigInteger>()) return put_long(number->little_endian);
    if (const auto* tensor = value.get_if<TensorValue>()) return put_tensor(*tensor);
    SSD_EXPECT(depth < kMaxDepth);
    if (const auto* list = value.get_if<List>()) return put_list(*list, depth);
    if (const auto* tuple = value.get_if<Tuple>()) return put_tuple(*tuple, depth);
    put_dict(*value.get_if<Dict>(), depth);
  }

  void put_integer(std::int64_t number) {
    if (number >= 0 && number <= 0xff) {
      put(Opcode::binint1);
      append_little_endian(out(), static_cast<std::uint8_t>(number));
    } else if (std::in_range<std::int32_t>(number)) {
      put(Opcode::binint);
      append_little_endian(out(), static_cast<std::int32_t>(number));
    } else {
      std::string bytes;
      append_little_endian(bytes, number);
      put_long(bytes);
    }
  }

  void put_long(const std::string& little_endian) {
    SSD_EXPECT(little_endian.size() <= 255);
    put(Opcode::long1);
    append_little_endian(out(), static_cast<std::uint8_t>(little_endian.size()));
    out() += little_endian;
  }

  void put_double(double number) {
    put(Opcode::binfloat);  // the only big-endian number of a pickle
    const auto bits = std::bit_cast<std::uint64_t>(number);
    for (int shift = 56; shift >= 0; shift -= 8) out().push_back(static_cast<char>(bits >> shift & 0xff));
  }

  void put_text(std::string_view text) {
    SSD_EXPECT(text.size() <= std::numeric_limits<std::uint32_t>::max());
    validate_utf8(text);
    put(Opcode::binunicode);
    append_little_endian(out(), static_cast<std::uint32_t>(text.size()));
    out() += text;
  }

  void put_global(std::string_view module, std::string_view name) {
    put(Opcode::global);
    out().append(module).append("\n").append(name).append("\n");
  }

  // Protocol 2 has no bytes: Python writes them as the call encode(text, "latin1").
  void put_bytes(const Bytes& bytes) {
    put_global("_codecs", "encode");
    put_text(latin1_to_utf8(bytes.data));
    put_text("latin1");
    put(Opcode::tuple2);
    put(Opcode::reduce);
  }

  void put_list(const List& list, int depth) {
    put(Opcode::empty_list);
    put(Opcode::mark);
    for (const auto& item : list.items) put_value(item, depth + 1);
    put(Opcode::appends);
  }

  void put_tuple(const Tuple& tuple, int depth) {
    put(Opcode::mark);
    for (const auto& item : tuple.items) put_value(item, depth + 1);
    put(Opcode::tuple);
  }

  void put_dict(const Dict& dict, int depth) {
    if (dict.kind() == Dict::Kind::counter) put_global("collections", "Counter");
    if (dict.kind() == Dict::Kind::ordered) {
      put_empty_ordered_dict();
    } else {
      put(Opcode::empty_dict);
    }
    put(Opcode::mark);
    for (const auto& [key, value] : dict.entries()) {
      put_value(key, depth + 1);
      put_value(value, depth + 1);
    }
    put(Opcode::setitems);
    if (dict.kind() == Dict::Kind::counter) {
      put(Opcode::tuple1);
      put(Opcode::reduce);
    }
  }

  void put_empty_ordered_dict() {
    put_global("collections", "OrderedDict");
    put(Opcode::empty_tuple);
    put(Opcode::reduce);
  }

  void put_integers(std::span<const std::int64_t> numbers) {
    put(Opcode::mark);
    for (const auto number : numbers) put_integer(number);
    put(Opcode::tuple);
  }

  // (storage, offset, sizes, strides, requires_grad, hooks)
  void put_tensor(const TensorValue& tensor) {
    SSD_EXPECT(tensor.storage != nullptr);
    const auto elements = tensor.storage->bytes.size() / element_bytes(tensor.dtype);
    validate_view(tensor, elements);
    put_global("torch._utils", "_rebuild_tensor_v2");
    put(Opcode::mark);
    put_storage(tensor, elements);
    put_integer(tensor.storage_offset);
    put_integers(tensor.shape);
    put_integers(tensor.strides);
    put(Opcode::new_false);
    put_empty_ordered_dict();
    put(Opcode::tuple);
    put(Opcode::reduce);
  }

  void put_storage(const TensorValue& tensor, std::size_t elements) {
    SSD_EXPECT(tensor.storage->bytes.size() % element_bytes(tensor.dtype) == 0);
    const auto [found, inserted] =
        known_.try_emplace(tensor.storage.get(), Known{written_.storages.size(), tensor.dtype});
    if (inserted) written_.storages.push_back(tensor.storage);
    SSD_EXPECT(found->second.dtype == tensor.dtype);
    put(Opcode::mark);
    put_text("storage");
    put_global("torch", storage_class_name(tensor.dtype));
    put_text(fmt::format("{}", found->second.index));
    put_text("cpu");
    put_integer(static_cast<std::int64_t>(elements));
    put(Opcode::tuple);
    put(Opcode::binpersid);
  }

  struct Known {
    std::size_t index;
    DType dtype;
  };

  WrittenPickle written_;
  std::unordered_map<const Storage*, Known> known_;
};

}  // namespace

WrittenPickle write_pickle(const Value& root) {
  return PickleWriter().write(root);
}

}  // namespace ssd
