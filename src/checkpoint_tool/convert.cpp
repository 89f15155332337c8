#include "checkpoint_tool/convert.hpp"

#include <cmath>
#include <cstring>

#include "checkpoint/state_dict.hpp"
#include "comm/half.hpp"
#include "core/bfloat16.hpp"

namespace ssd {
namespace {

template <class Element>
std::vector<Element> elements_of(const TensorValue& tensor) {
  const auto bytes = contiguous_bytes(tensor);
  std::vector<Element> elements(bytes.size() / sizeof(Element));
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

template <class Element>
TensorValue tensor_of(DType dtype, std::vector<std::int64_t> shape, const std::vector<Element>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  return make_tensor(dtype, std::move(shape), {bytes.begin(), bytes.end()});
}

TensorValue converted(const NamedTensor& source, DType dtype) {
  const auto& [name, tensor] = source;
  const auto values = to_doubles(tensor);
  const auto round_all = [&](auto round, auto back) {
    std::vector<decltype(round(0.0))> rounded;
    rounded.reserve(values.size());
    for (const double value : values) {
      rounded.push_back(round(value));
      SSD_VALIDATE(!std::isfinite(value) || std::isfinite(back(rounded.back())),
                   "'{}' holds {}, which {} cannot; leave its dtype as it is", name, value,
                   dtype_name(dtype));
    }
    return tensor_of(dtype, tensor.shape, rounded);
  };
  const auto itself = [](auto value) { return value; };
  // A double goes through float: rounded twice, which differs from once in rare ties by one last bit.
  switch (dtype) {
    case DType::float64:
      return round_all(itself, itself);
    case DType::float32:
      return round_all([](double value) { return static_cast<float>(value); }, itself);
    case DType::float16:
      return round_all([](double value) { return float_to_half(static_cast<float>(value)); }, half_to_float);
    default:
      SSD_EXPECT(dtype == DType::bfloat16);
      return round_all([](double value) { return float_to_bfloat16(static_cast<float>(value)); },
                       bfloat16_to_float);
  }
}

}  // namespace

bool is_floating(DType dtype) {
  return dtype == DType::float64 || dtype == DType::float32 || dtype == DType::float16 ||
         dtype == DType::bfloat16;
}

std::vector<double> to_doubles(const TensorValue& tensor) {
  const auto widen = [](const auto& elements, auto widen_one) {
    std::vector<double> values;
    values.reserve(elements.size());
    for (const auto element : elements) values.push_back(widen_one(element));
    return values;
  };
  switch (tensor.dtype) {
    case DType::float64:
      return elements_of<double>(tensor);
    case DType::float32:
      return widen(elements_of<float>(tensor), [](float value) { return double{value}; });
    case DType::float16:
      return widen(elements_of<std::uint16_t>(tensor), half_to_float);
    default:
      SSD_EXPECT(tensor.dtype == DType::bfloat16);
      return widen(elements_of<std::uint16_t>(tensor), bfloat16_to_float);
  }
}

Value convert_checkpoint(const CheckpointItem& root, Part part, std::optional<DType> dtype) {
  Dict model(Dict::Kind::ordered);
  for (const auto& named : state_dict_of(root)) {
    const bool is_changed = dtype && is_floating(named.tensor.dtype) && named.tensor.dtype != *dtype;
    // Written row-major and on its own: a view would bring its whole storage along.
    model.set(named.name, is_changed ? converted(named, *dtype)
                                     : make_tensor(named.tensor.dtype, named.tensor.shape,
                                                   contiguous_bytes(named.tensor)));
  }
  if (part == Part::weights) return model;
  const auto model_key = state_dict_key(root);
  SSD_VALIDATE(model_key,
               "checkpoint '{}': a state_dict alone, it has no optimizer to leave out; take --weights-only",
               root.source());
  Dict kept;
  for (const auto& [key, value] : root.dict().entries()) {
    const auto name = key_text(key);
    if (name == "optimizer" || name == "scheduler") continue;
    if (name == *model_key) {
      kept.set("model", model);
    } else if (name != "model") {  // beside the state_dict: the name of an architecture
      kept.set(key, value);
    }
  }
  return kept;
}

}  // namespace ssd
