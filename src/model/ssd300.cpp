#include "model/ssd300.hpp"

#include <algorithm>

#include "boxes/constants.hpp"

namespace ssd {
namespace {

namespace nn = torch::nn;

constexpr std::array kHiddenChannels{256, 256, 128, 128, 128};

nn::Conv2d head(int in, int out) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1));
}

// (N, boxes*values, H, W) to (N, values, boxes*H*W): within a map the channel is coordinate-major.
torch::Tensor flatten_head(const torch::Tensor& output, int values) {
  return output.reshape({output.size(0), values, -1});
}

}  // namespace

Ssd300::Ssd300(Backbone backbone, int class_count) : backbone_(backbone), class_count_(class_count) {
  feature_extractor_ = register_module("feature_extractor", std::make_shared<FeatureExtractor>(backbone));
  const auto channels = feature_map_channels(backbone);
  // 1x1 and 3x3. Blocks 0 to 2 halve the map, blocks 3 and 4 take off a border of one.
  for (std::size_t i = 0; i + 1 < kMapCount; ++i) {
    const bool halves = i < 3;
    const int hidden = kHiddenChannels[i];
    nn::ModuleList block;
    const auto first =
        append_unit(block, nn::Conv2d(nn::Conv2dOptions(channels[i], hidden, 1).bias(false)), true);
    const auto second = append_unit(block,
                                    nn::Conv2d(nn::Conv2dOptions(hidden, channels[i + 1], 3)
                                                   .stride(halves ? 2 : 1)
                                                   .padding(halves ? 1 : 0)
                                                   .bias(false)),
                                    true);
    additional_blocks_->push_back(block);
    additional_units_.push_back({first, second});
  }
  for (std::size_t i = 0; i < kMapCount; ++i) {
    location_heads_->push_back(head(channels[i], 4 * kBoxesPerCell[i]));
    confidence_heads_->push_back(head(channels[i], class_count * kBoxesPerCell[i]));
  }
  register_module("additional_blocks", additional_blocks_);
  register_module("loc", location_heads_);
  register_module("conf", confidence_heads_);
}

std::vector<torch::Tensor> Ssd300::feature_maps(const torch::Tensor& images) {
  std::vector<torch::Tensor> maps{feature_extractor_->forward(images)};
  for (const auto& [first, second] : additional_units_)
    maps.push_back(second.forward(first.forward(maps.back())));
  return maps;
}

void Ssd300::for_each_unit(const UnitFunction& function) {
  feature_extractor_->for_each_unit(function);
  for (auto& block : additional_units_) std::for_each(block.begin(), block.end(), function);
}

void Ssd300::fold() {
  for_each_unit([](ConvolutionUnit& unit) { unit.fold(); });
}

void Ssd300::unfold() {
  for_each_unit([](ConvolutionUnit& unit) { unit.unfold(); });
}

Predictions Ssd300::forward(const torch::Tensor& images) {
  const auto maps = feature_maps(images);
  std::vector<torch::Tensor> locations, confidences;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    locations.push_back(flatten_head(location_heads_[i]->as<nn::Conv2d>()->forward(maps[i]), 4));
    confidences.push_back(
        flatten_head(confidence_heads_[i]->as<nn::Conv2d>()->forward(maps[i]), class_count_));
  }
  return {torch::cat(locations, 2), torch::cat(confidences, 2)};
}

void initialise_weights(Ssd300& model, std::uint64_t seed) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(seed);
  for (auto& item : model.named_parameters()) {
    auto& value = item.value();
    const bool is_backbone = item.key().starts_with("feature_extractor.");
    if (value.dim() > 1) {
      if (is_backbone) {
        nn::init::kaiming_normal_(value, 0, torch::kFanOut, torch::kReLU);
      } else {
        nn::init::xavier_uniform_(value);
      }
    } else if (item.key().starts_with("loc.") || item.key().starts_with("conf.")) {
      // PyTorch's default bias: uniform within 1/sqrt(fan_in) of the head's 3x3 convolution.
      const auto weight = model.named_parameters()[item.key().substr(0, item.key().size() - 4) + "weight"];
      const double bound = 1 / std::sqrt(static_cast<double>(weight.numel() / weight.size(0)));
      value.uniform_(-bound, bound);
    } else {
      value.fill_(item.key().ends_with(".weight") ? 1 : 0);  // BatchNorm
    }
  }
}

}  // namespace ssd
