#include "checkpoint/tensor.hpp"

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.hpp"

namespace ssd {
namespace {

struct DTypeFacts {
  DType dtype;
  std::size_t bytes;
  std::string_view name;
  std::string_view storage_class;
};

// In the order of the enumeration.
constexpr std::array<DTypeFacts, 10> kDTypes{{
    {DType::float64, 8, "float64", "DoubleStorage"},
    {DType::float32, 4, "float32", "FloatStorage"},
    {DType::float16, 2, "float16", "HalfStorage"},
    {DType::bfloat16, 2, "bfloat16", "BFloat16Storage"},
    {DType::int64, 8, "int64", "LongStorage"},
    {DType::int32, 4, "int32", "IntStorage"},
    {DType::int16, 2, "int16", "ShortStorage"},
    {DType::int8, 1, "int8", "CharStorage"},
    {DType::uint8, 1, "uint8", "ByteStorage"},
    {DType::boolean, 1, "bool", "BoolStorage"},
}};

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxRank = 16;
constexpr std::int64_t kMaxRepeatedBytes = std::int64_t{1} << 30;

const DTypeFacts& facts(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)];
}

// Copies the row-major elements of dimension `dimension` and below, starting at element `start` of the
// storage.
std::byte* copy_elements(const TensorValue& tensor, std::size_t dimension, std::int64_t start,
                         std::byte* out) {
  const auto size = element_bytes(tensor.dtype);
  if (dimension == tensor.shape.size()) {
    std::memcpy(out, tensor.storage->bytes.data() + static_cast<std::size_t>(start) * size, size);
    return out + size;
  }
  for (std::int64_t i = 0; i < tensor.shape[dimension]; ++i) {
    out = copy_elements(tensor, dimension + 1, start + i * tensor.strides[dimension], out);
  }
  return out;
}

}  // namespace

std::size_t element_bytes(DType dtype) {
  return facts(dtype).bytes;
}
std::string_view dtype_name(DType dtype) {
  return facts(dtype).name;
}
std::string_view storage_class_name(DType dtype) {
  return facts(dtype).storage_class;
}

std::optional<DType> dtype_of_storage_class(std::string_view name) {
  for (const auto& entry : kDTypes) {
    if (entry.storage_class == name) return entry.dtype;
  }
  return std::nullopt;
}

std::shared_ptr<Storage> make_storage(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> view(*owner);
  return std::make_shared<Storage>(Storage{view, std::move(owner)});
}

std::int64_t TensorValue::elements() const {
  std::int64_t product = 1;
  for (const auto size : shape) product *= size;
  return product;
}

bool TensorValue::is_contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<std::int64_t>(shape[i], 1);  // as torch has it for tensors without elements
  }
  return strides;
}

TensorValue make_tensor(DType dtype, std::vector<std::int64_t> shape, std::vector<std::byte> bytes) {
  auto storage = make_storage(std::move(bytes));
  auto tensor = borrow_tensor(dtype, std::move(shape), storage->bytes);
  tensor.storage = std::move(storage);
  return tensor;
}

TensorValue borrow_tensor(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes) {
  TensorValue tensor{dtype, std::move(shape), {}, 0, std::make_shared<Storage>(Storage{bytes, nullptr})};
  tensor.strides = contiguous_strides(tensor.shape);
  SSD_EXPECT(static_cast<std::size_t>(tensor.elements()) * element_bytes(dtype) == bytes.size());
  return tensor;
}

void validate_view(const TensorValue& tensor, std::uint64_t storage_elements) {
  const auto rank = tensor.shape.size();
  SSD_VALIDATE(rank == tensor.strides.size(), "a tensor has {} sizes but {} strides", rank,
               tensor.strides.size());
  SSD_VALIDATE(rank <= kMaxRank, "a tensor has {} dimensions (at most {})", rank, kMaxRank);
  SSD_VALIDATE(tensor.storage_offset >= 0, "a tensor has the storage offset {}", tensor.storage_offset);
  std::int64_t elements = 1;
  bool empty = false;
  for (const auto size : tensor.shape) {
    SSD_VALIDATE(size >= 0, "a tensor has the negative size {}", size);
    empty = empty || size == 0;
  }
  for (std::size_t i = 0; i < rank && !empty; ++i) {
    SSD_VALIDATE(elements <= kLargest / 8 / tensor.shape[i], "a tensor's sizes multiply beyond 64 bits");
    elements *= tensor.shape[i];
  }
  auto last = tensor.storage_offset;  // the last element of the storage that the tensor touches
  for (std::size_t i = 0; i < rank; ++i) {
    const auto stride = tensor.strides[i];
    SSD_VALIDATE(stride >= 0, "a tensor has the negative stride {}", stride);
    const auto steps = empty ? 0 : tensor.shape[i] - 1;
    SSD_VALIDATE(steps == 0 || stride <= (kLargest - last) / steps,
                 "a tensor's strides reach beyond 64 bits");
    last += steps * stride;
  }
  const auto needed = static_cast<std::uint64_t>(last) + (empty ? 0 : 1);
  SSD_VALIDATE(needed <= storage_elements, "a tensor reaches to element {} of a storage of {}", needed,
               storage_elements);
}

std::vector<std::byte> contiguous_bytes(const TensorValue& tensor) {
  SSD_EXPECT(tensor.storage != nullptr);
  const auto size = element_bytes(tensor.dtype);
  validate_view(tensor, tensor.storage->bytes.size() / size);
  const auto elements = static_cast<std::size_t>(tensor.elements());
  if (elements == 0) return {};
  const auto start = tensor.storage->bytes.data() + static_cast<std::size_t>(tensor.storage_offset) * size;
  if (tensor.is_contiguous()) return {start, start + elements * size};
  SSD_VALIDATE(elements <= tensor.storage->bytes.size() / size ||
                   elements * size <= static_cast<std::size_t>(kMaxRepeatedBytes),
               "a tensor repeats its elements to {} bytes", elements * size);
  std::vector<std::byte> bytes(elements * size);
  copy_elements(tensor, 0, tensor.storage_offset, bytes.data());
  return bytes;
}

}  // namespace ssd
