// A tensor as a checkpoint file describes it: dtype, shape, strides and a shared storage of bytes. No torch
// in here. Copies are shallow: the bytes are shared and never changed. Safe to read from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ssd {

enum class DType { float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, boolean };

std::size_t element_bytes(DType dtype);
std::string_view dtype_name(DType dtype);  // as torch prints it without "torch.": "float32", "bool", ...
std::string_view storage_class_name(DType dtype);  // class in the module "torch": "FloatStorage", ...
std::optional<DType> dtype_of_storage_class(std::string_view name);

// Little-endian elements. owner keeps the bytes alive; null where whoever made the storage does.
struct Storage {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

std::shared_ptr<Storage> make_storage(std::vector<std::byte> bytes);

struct TensorValue {
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements, as many as shape has
  std::int64_t storage_offset = 0;    // in elements
  std::shared_ptr<const Storage> storage;

  std::int64_t elements() const;  // product of the shape; 1 for a tensor of no dimensions
  bool is_contiguous() const;     // row-major
};

std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape);

// A row-major tensor over the whole of the bytes. The bytes of the second form stay the caller's and must
// outlive it. Throws ContractError where their number does not fit the shape.
TensorValue make_tensor(DType dtype, std::vector<std::int64_t> shape, std::vector<std::byte> bytes);
TensorValue borrow_tensor(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes);

// The description is sound and lies within a storage of so many elements. Throws Error with what is wrong.
void validate_view(const TensorValue& tensor, std::uint64_t storage_elements);

// The elements in row-major order. Throws Error where elements are repeated (stride 0) to more than 1 GiB: a
// file of a few bytes can declare terabytes in this way, so compare the shape with the expected one first.
std::vector<std::byte> contiguous_bytes(const TensorValue& tensor);

}  // namespace ssd
