#include "checkpoint_tool/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "checkpoint/state_dict.hpp"
#include "checkpoint_tool/convert.hpp"
#include "checkpoint_tool/flat_tensors.hpp"

namespace ssd {
namespace {

bool is_state_dict(const CheckpointItem& root) {
  return !root.dict().contains("model");
}

std::vector<FlatTensor> weights_of(const CheckpointItem& root) {
  std::vector<FlatTensor> weights;
  for (auto& [name, tensor] : state_dict_of(root)) weights.push_back({name, tensor});
  return weights;
}

// How far apart two tensors of one dtype and shape are; nothing where their bits are equal.
std::string difference(const TensorValue& first, const TensorValue& second) {
  const auto a = contiguous_bytes(first), b = contiguous_bytes(second);
  if (a == b) return {};
  const auto size = element_bytes(first.dtype);
  std::int64_t differing = 0;
  for (std::size_t at = 0; at < a.size(); at += size)
    differing += std::memcmp(a.data() + at, b.data() + at, size) != 0 ? 1 : 0;
  const auto text = fmt::format("{} of {} elements differ", differing, first.elements());
  if (!is_floating(first.dtype)) return text;
  const auto x = to_doubles(first), y = to_doubles(second);
  double largest = 0;
  std::int64_t not_finite = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i]) && std::isfinite(y[i])) {
      largest = std::max(largest, std::abs(x[i] - y[i]));
    } else {
      ++not_finite;
    }
  }
  return text + fmt::format(", by {:.3g} at most", largest) +
         (not_finite > 0 ? fmt::format(", {} are not finite", not_finite) : "");
}

}  // namespace

Comparison compare_checkpoints(const CheckpointItem& first, const CheckpointItem& second) {
  const bool has_weights_alone = is_state_dict(first) != is_state_dict(second);
  const auto left = has_weights_alone ? weights_of(first) : flat_tensors(first);
  const auto right = has_weights_alone ? weights_of(second) : flat_tensors(second);
  std::unordered_map<std::string, const TensorValue*> by_path;
  for (const auto& [path, tensor] : right) by_path[path] = &tensor;
  Comparison result;
  std::size_t equal = 0, differing = 0;
  const auto add = [&](const std::string& path, const std::string& text) {
    result.text += fmt::format("{}: {}\n", path, text);
    ++differing;
  };
  for (const auto& [path, tensor] : left) {
    const auto found = by_path.find(path);
    if (found == by_path.end()) {
      add(path, fmt::format("only in {}", first.source()));
      continue;
    }
    const auto& other = *found->second;
    by_path.erase(found);
    if (tensor.dtype != other.dtype || tensor.shape != other.shape) {
      add(path, fmt::format("{} {} and {} {}", dtype_name(tensor.dtype), shape_text(tensor),
                            dtype_name(other.dtype), shape_text(other)));
    } else if (const auto text = difference(tensor, other); !text.empty()) {
      add(path, text);
    } else {
      ++equal;
    }
  }
  for (const auto& [path, tensor] : right) {
    if (by_path.contains(path)) add(path, fmt::format("only in {}", second.source()));
  }
  result.are_equal = differing == 0;
  result.text += fmt::format("{} tensors equal, {} differ\n", equal, differing);
  return result;
}

}  // namespace ssd
