#include "checkpoint_tool/describe.hpp"

#include <algorithm>
#include <vector>

#include "checkpoint/backbone_name.hpp"
#include "checkpoint/class_count.hpp"
#include "checkpoint/own_section.hpp"
#include "checkpoint/state_dict.hpp"
#include "checkpoint_tool/flat_tensors.hpp"
#include "core/digest.hpp"

namespace ssd {
namespace {

constexpr const char* kRow = "{:<{}}  {:<8}  {:<14}  {}\n";
constexpr std::size_t kMostClassNames = 8;

// Simple values in one line, as Python would name them; nothing for what is no simple value.
std::string simple_text(const Value& value) {
  if (const auto* number = value.get_if<std::int64_t>()) return fmt::format("{}", *number);
  if (const auto* number = value.get_if<double>()) return fmt::format("{}", *number);
  if (const auto* flag = value.get_if<bool>()) return *flag ? "true" : "false";
  if (const auto* text = value.get_if<std::string>()) return *text;
  return {};
}

std::string facts(const Dict& dict, const std::string& before) {
  std::string lines;
  for (const auto& [key, value] : dict.entries()) {
    const auto name = before + key_text(key);
    if (const auto* inner = value.get_if<Dict>()) {
      lines += facts(*inner, name + "/");
      continue;
    }
    auto text = simple_text(value);
    while (text.ends_with('\n')) text.pop_back();
    if (text.empty()) continue;
    // A text of several lines (the configuration) is set off.
    std::string before_lines = " ";
    if (text.find('\n') != std::string::npos) before_lines = "\n    ";
    for (auto at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 5))
      text.replace(at, 1, "\n    ");
    lines += fmt::format("{}:{}{}\n", name, before_lines, text);
  }
  return lines;
}

std::string class_line(const CheckpointItem& label_map) {
  const auto& entries = label_map.dict().entries();
  std::string names;
  for (std::size_t i = 0; i < std::min(entries.size(), kMostClassNames); ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", simple_text(entries[i].value));
  return fmt::format("label_map: {} labels: {}{}\n", entries.size(), names,
                     entries.size() > kMostClassNames ? ", ..." : "");
}

// Any optimizer's: what it is of no matter to whoever looks.
std::string learning_rate_line(const CheckpointItem& optimizer) {
  std::string line;
  try {
    for (const auto& group : optimizer.at("param_groups").items()) {
      const auto rate = group.find("lr"), decay = group.find("weight_decay");
      line += fmt::format("optimizer: {} parameters, learning rate {}, weight decay {}\n",
                          group.at("params").items().size(), rate ? simple_text(rate->value()) : "none",
                          decay ? simple_text(decay->value()) : "none");
    }
  } catch (const Error&) {
    return "optimizer: not in the form of torch.optim\n";
  }
  return line;
}

// Nothing where the file is of no SSD300.
std::string network_line(const CheckpointItem& root) {
  try {
    const auto backbone = backbone_name_of(state_dict_of(root), kSsdLayer3);
    if (!backbone) return {};
    return fmt::format("network: SSD300 with {}, {} classes and the background\n", *backbone,
                       count_classes(root));
  } catch (const Error&) {
    return {};
  }
}

std::string tensor_table(const std::vector<FlatTensor>& tensors) {
  std::size_t widest = 6;
  for (const auto& [path, tensor] : tensors) widest = std::max(widest, path.size());
  std::string lines = fmt::format(kRow, "tensor", widest, "dtype", "shape", "digest");
  Digester all;
  std::int64_t elements = 0;
  for (const auto& [path, tensor] : tensors) {
    const auto bytes = contiguous_bytes(tensor);
    all.update(std::as_bytes(std::span(path)));
    all.update(bytes);
    elements += tensor.elements();
    lines +=
        fmt::format(kRow, path, widest, dtype_name(tensor.dtype), shape_text(tensor), digest_of(bytes).hex());
  }
  return lines + fmt::format("{} tensors, {} elements, digest of names and elements {}\n", tensors.size(),
                             elements, all.digest().hex());
}

}  // namespace

std::string describe_checkpoint(const CheckpointItem& root, std::uint64_t file_bytes) {
  std::string text = fmt::format("{}: {} bytes\n", root.source(), file_bytes);
  for (const char* name : {"epoch", "iteration"}) {
    if (const auto item = root.find(name))
      text += fmt::format("{}: {} is next\n", name, simple_text(item->value()));
  }
  text += network_line(root);
  if (const auto labels = root.find("label_map"); labels && labels->value().get_if<Dict>() != nullptr)
    text += class_line(*labels);
  if (const auto optimizer = root.find("optimizer"); optimizer && !optimizer->is_none())
    text += learning_rate_line(*optimizer);
  if (const auto own = own_section_of(root)) text += facts(own->dict(), "ssd/");
  if (!state_dict_key(root))
    text += "a state_dict alone: no run can go on from it, but start with its weights\n";
  return text + tensor_table(flat_tensors(root));
}

}  // namespace ssd
