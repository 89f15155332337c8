// LibTorch is compiled with NDEBUG, and at::RecordFunction has a member more without.
#ifndef NDEBUG
#define NDEBUG
#endif
#include "support/rounding_noise.hpp"

#include <ATen/record_function.h>

#include <array>
#include <cmath>
#include <memory>
#include <string_view>

#include "core/error.hpp"

namespace ssd::test {
namespace {

struct Noise {
  double unit = 0;
  std::uint64_t bits = 0;
};
Noise noise;

double next_sign() {  // xorshift64
  noise.bits ^= noise.bits << 13;
  noise.bits ^= noise.bits >> 7;
  noise.bits ^= noise.bits << 17;
  return (noise.bits >> 63) != 0 ? 1 : -1;
}

void add_errors(const torch::Tensor& result, std::int64_t terms) {
  SSD_EXPECT(result.is_non_overlapping_and_dense());
  auto* values = static_cast<double*>(result.mutable_data_ptr());
  const auto count = result.numel();
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i) squares += values[i] * values[i];
  const double size = noise.unit * std::sqrt(static_cast<double>(terms) / 6) *
                      std::sqrt(squares / static_cast<double>(count));
  for (std::int64_t i = 0; i < count; ++i) values[i] += next_sign() * size;
}

// Of a call: how many terms are added in each number of its results; 0: none.
struct Terms : at::ObserverContext {
  std::array<std::int64_t, 3> counts{};
};

std::unique_ptr<at::ObserverContext> before(const at::RecordFunction& call) {
  const std::string_view name = call.name();
  const auto numbers_per = [&](std::size_t input, std::int64_t dimension) {
    const auto tensor = call.inputs()[input].toTensor();
    return tensor.numel() / tensor.size(dimension);
  };
  auto terms = std::make_unique<Terms>();
  if (name == "aten::convolution") {
    terms->counts = {numbers_per(1, 0)};
  } else if (name == "aten::convolution_backward") {  // of input, weight and bias
    terms->counts = {numbers_per(2, 1), numbers_per(0, 1), numbers_per(0, 1)};
  } else if (name == "aten::_log_softmax") {
    terms->counts = {call.inputs()[0].toTensor().size(call.inputs()[1].toInt())};
  } else if (name == "aten::sum") {
    terms->counts = {call.inputs()[0].toTensor().numel()};  // of all results together
  } else {
    return nullptr;
  }
  return terms;
}

void after(const at::RecordFunction& call, at::ObserverContext* context) {
  if (context == nullptr) return;
  const auto& counts = static_cast<Terms*>(context)->counts;
  const bool is_sum = std::string_view(call.name()) == "aten::sum";
  for (std::size_t i = 0; i < counts.size() && i < call.outputs().size(); ++i) {
    if (!call.outputs()[i].isTensor() || counts[i] == 0) continue;
    const auto result = call.outputs()[i].toTensor();
    if (!result.defined() || result.scalar_type() != torch::kDouble || result.numel() == 0) continue;
    add_errors(result, is_sum ? counts[i] / result.numel() : counts[i]);
  }
}

}  // namespace

RoundingNoise::RoundingNoise(double unit, std::uint64_t seed) {
  noise = {unit, 0x9E3779B97F4A7C15ULL * (seed + 1)};
  handle_ = at::addGlobalCallback(at::RecordFunctionCallback(before, after)
                                      .needsInputs(true)
                                      .needsOutputs(true)
                                      .scopes({at::RecordScope::FUNCTION}));
}

RoundingNoise::~RoundingNoise() {
  at::removeCallback(handle_);
}

}  // namespace ssd::test
