#include "train/input_transform.hpp"

#include "data/batch.hpp"

namespace ssd {
namespace {

// Mean and deviation of ImageNet's channels, R G B, of values in [0,1]; the reference's normalisation.
constexpr std::array kMean{0.485, 0.456, 0.406};
constexpr std::array kDeviation{0.229, 0.224, 0.225};

}  // namespace

InputTransform::InputTransform(const ComputePlan& plan) : device_(plan.device), arena_(plan.arena) {
  scale_ = torch::empty({3});
  shift_ = torch::empty({3});
  for (std::size_t c = 0; c < 3; ++c) {
    scale_.data_ptr<float>()[c] = static_cast<float>(1 / (255 * kDeviation[c]));
    shift_.data_ptr<float>()[c] = static_cast<float>(-kMean[c] / kDeviation[c]);
  }
  scale_ = scale_.to(device_);
  shift_ = shift_.to(device_);
}

torch::Tensor InputTransform::operator()(const std::uint8_t* images, int count) const {
  auto* bytes = const_cast<std::uint8_t*>(images);
  return normalise(torch::from_blob(bytes, {count, kInputSide, kInputSide, 3}, torch::kByte).to(device_));
}

torch::Tensor InputTransform::normalise(const torch::Tensor& pixels) const {
  auto values = pixels.to(torch::kFloat).mul_(scale_).add_(shift_);
  values = values.permute({0, 3, 1, 2}).to(arena_.compute_type);  // a channels-last view
  return arena_.channels_last ? values : values.contiguous();
}

}  // namespace ssd
