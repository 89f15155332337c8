// The number source of the golden data (tests/data/golden/README.txt, section 1): inputs and weights are
// regenerated, not stored.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/digest.hpp"
#include "model/model_tensors.hpp"
#include "model/ssd300.hpp"

namespace ssd::test {

inline std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

inline std::uint32_t salt_of(std::string_view name) {
  return crc32(std::as_bytes(std::span(name)));
}
inline std::uint32_t hash_of(std::uint32_t i, std::uint32_t salt) {
  return mix(mix(i) ^ salt);
}
inline double u24(std::uint32_t i, std::uint32_t salt) {
  return (hash_of(i, salt) >> 8) * 0x1p-24 - .5;
}
inline double u8(std::uint32_t i, std::uint32_t salt) {
  return (hash_of(i, salt) >> 24) * 0x1p-8 - .5;
}

// field(shape, name, scale), float32.
inline torch::Tensor field(at::IntArrayRef shape, std::string_view name, double scale) {
  auto tensor = torch::empty(shape, torch::kFloat);
  const auto salt = salt_of(name);
  auto* values = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    values[i] = static_cast<float>(scale * u24(static_cast<std::uint32_t>(i), salt));
  }
  return tensor;
}

// The fill rule for a tensor of the state_dict, in its own shape and dtype.
inline torch::Tensor fill_rule(const std::string& key, const torch::Tensor& like) {
  const auto salt = salt_of(key);
  const auto fill = [&](auto&& value_at) {
    auto tensor = torch::empty(like.sizes(), torch::kDouble);
    auto* values = tensor.data_ptr<double>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = value_at(static_cast<std::uint32_t>(i));
    return tensor.to(like.scalar_type());
  };
  const auto is_last_norm_of_block = [&] {
    // feature_extractor.feature_extractor.S.B.bnL.weight, L = 3 in a bottleneck and 2 elsewhere; the caller's
    // model has a bn3 only in bottlenecks, whose bn2 is not the last.
    return key.starts_with("feature_extractor.feature_extractor.") && key.ends_with(".weight") &&
           key.find(".bn") != std::string::npos;
  };
  if (key.ends_with("num_batches_tracked"))
    return fill([&](std::uint32_t i) { return double(hash_of(i, salt) >> 28); });
  if (like.dim() > 1) {
    const double fan_in = static_cast<double>(like.numel()) / static_cast<double>(like.size(0));
    int k = 4;
    while (std::pow(4.0, k) * fan_in > 48) --k;
    return fill([&](std::uint32_t i) { return u24(i, salt) * std::ldexp(1, k); });
  }
  if (key.ends_with("running_mean")) return fill([&](std::uint32_t i) { return u8(i, salt) / 4; });
  if (key.ends_with("running_var")) return fill([&](std::uint32_t i) { return 2 + u8(i, salt); });
  if (key.starts_with("loc.") || key.starts_with("conf."))
    return fill([&](std::uint32_t i) { return u8(i, salt) / 2; });
  if (key.ends_with(".bias")) return fill([&](std::uint32_t i) { return u8(i, salt) / 4; });
  if (is_last_norm_of_block() && key.find(".bn1.") == std::string::npos) {
    return fill([&](std::uint32_t i) { return .25 + u8(i, salt) / 8; });
  }
  return fill([&](std::uint32_t i) { return 1 + u8(i, salt) / 2; });
}

// Fills every parameter and buffer by the fill rule.
inline void fill_by_rule(Ssd300& model) {
  torch::NoGradGuard no_grad;
  const bool is_bottleneck = feature_map_channels(model.backbone())[0] == 1024;
  for (auto& [name, tensor, is_parameter, is_norm] : model_tensors(model)) {
    const bool is_inner_norm = is_bottleneck && name.find(".bn2.weight") != std::string::npos;
    if (is_inner_norm) {
      const auto salt = salt_of(name);
      auto values = torch::empty(tensor.sizes(), torch::kDouble);
      for (std::int64_t i = 0; i < values.numel(); ++i) {
        values.data_ptr<double>()[i] = 1 + u8(static_cast<std::uint32_t>(i), salt) / 2;
      }
      tensor.copy_(values);
    } else {
      tensor.copy_(fill_rule(name, tensor));
    }
  }
}

// A 1-D tensor that owns a copy of the values.
template <class T>
torch::Tensor tensor_of(const std::vector<T>& values) {
  return torch::tensor(values, torch::CppTypeToScalarType<T>::value);
}

}  // namespace ssd::test
