#include "model/batch_norm_relu.hpp"

#include <ATen/Parallel.h>

#include "core/error.hpp"
#include "model/batch_norm_kernels.hpp"

namespace ssd {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows are cut into this many parts at most, whatever the number of threads: the order of additions is the
// same.
constexpr std::int64_t kMostParts = 64;
constexpr std::int64_t kFewestRows = 128;  // of a part

struct Rows {
  std::int64_t count, channels, part, parts;
};

Rows rows_of(const Tensor& map) {
  const auto channels = map.size(1);
  const auto count = map.numel() / channels;
  const auto part = std::max(kFewestRows, (count + kMostParts - 1) / kMostParts);
  return {count, channels, part, (count + part - 1) / part};
}

// Calls work(part index, first row, rows) for each part, on LibTorch's threads.
template <class Work>
void for_each_part(const Rows& rows, const Work& work) {
  at::parallel_for(0, rows.parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto part = begin; part < end; ++part) {
      const auto first = part * rows.part;
      work(part, first, static_cast<std::size_t>(std::min(rows.part, rows.count - first)));
    }
  });
}

// Two sums by channel, of each part first, then over the parts in their order.
template <class Work>
std::pair<std::vector<double>, std::vector<double>> sums_by_channel(const Rows& rows, const Work& work) {
  const auto channels = static_cast<std::size_t>(rows.channels);
  std::vector<double> parts(2 * channels * static_cast<std::size_t>(rows.parts));
  for_each_part(rows, [&](std::int64_t part, std::int64_t first, std::size_t count) {
    auto* at = parts.data() + 2 * channels * static_cast<std::size_t>(part);
    work(first, count, at, at + channels);
  });
  std::vector<double> first(channels), second(channels);
  for (std::size_t part = 0; part < static_cast<std::size_t>(rows.parts); ++part) {
    const auto* at = parts.data() + 2 * channels * part;
    for (std::size_t c = 0; c < channels; ++c) first[c] += at[c];
    for (std::size_t c = 0; c < channels; ++c) second[c] += at[channels + c];
  }
  return {std::move(first), std::move(second)};
}

template <class Value>
const Value* data_of(const Tensor& map) {
  return map.defined() ? static_cast<const Value*>(map.const_data_ptr()) : nullptr;
}

template <class Value>
Value* mutable_data_of(const Tensor& map) {
  return map.defined() ? static_cast<Value*>(map.mutable_data_ptr()) : nullptr;
}

template <class Value>
const Value* at_row(const Value* data, std::int64_t offset) {
  return data == nullptr ? nullptr : data + offset;
}
template <class Value>
Value* at_row(Value* data, std::int64_t offset) {
  return data == nullptr ? nullptr : data + offset;
}

// Calls function(Value{}) with the kernels' type of the map's dtype.
template <class Function>
auto with_value_type(const Tensor& map, const Function& function) {
  switch (map.scalar_type()) {
    case torch::kDouble:
      return function(double{});
    case torch::kBFloat16:
      return function(BFloat16Bits{});
    default:
      return function(float{});
  }
}

// Of a channel over the batch; variance as the mean of squared deviations.
struct Statistics {
  std::vector<double> mean, variance;
};

template <class Value>
Statistics statistics_of(const Tensor& input, const Rows& rows) {
  using Real = RealOf<Value>;
  const auto channels = static_cast<std::size_t>(rows.channels);
  const auto* x = data_of<Value>(input);
  // The first row stands for the mean while squares are summed.
  const auto first_row =
      input.select(0, 0).select(1, 0).select(1, 0).to(torch::CppTypeToScalarType<Real>::value).contiguous();
  const auto* shift = first_row.template const_data_ptr<Real>();
  auto [sums, squares] =
      sums_by_channel(rows, [&](std::int64_t first, std::size_t count, double* sum, double* square) {
        add_moments(x + first * rows.channels, count, channels, shift, sum, square);
      });
  const auto n = static_cast<double>(rows.count);
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = sums[c] / n;
    const double variance = squares[c] / n - mean * mean;
    squares[c] = variance < 0 ? 0 : variance;  // a NaN stays one
    sums[c] = mean + double{shift[c]};
  }
  return {std::move(sums), std::move(squares)};
}

struct NormOptions {
  double epsilon, momentum;
  bool with_relu;
};

// Running statistics as torch's: the variance that enters them is unbiased.
template <class Real>
void update_running(const Statistics& statistics, const Rows& rows, double momentum, Tensor& mean,
                    Tensor& variance) {
  auto* running_mean = mean.mutable_data_ptr<Real>();
  auto* running_variance = variance.mutable_data_ptr<Real>();
  const double unbiased = static_cast<double>(rows.count) / static_cast<double>(rows.count - 1);
  for (std::size_t c = 0; c < statistics.mean.size(); ++c) {
    running_mean[c] =
        static_cast<Real>((1 - momentum) * double{running_mean[c]} + momentum * statistics.mean[c]);
    running_variance[c] = static_cast<Real>((1 - momentum) * double{running_variance[c]} +
                                            momentum * unbiased * statistics.variance[c]);
  }
}

class BatchNormRelu : public torch::autograd::Function<BatchNormRelu> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& weight,
                        const Tensor& bias, const std::optional<Tensor>& residual_or_none,
                        Tensor running_mean, Tensor running_variance, const NormOptions& options) {
    const auto residual = residual_or_none.value_or(Tensor());
    const auto rows = rows_of(input);
    auto output = torch::empty_like(input);
    auto saved = torch::empty({2, rows.channels}, torch::kDouble);  // mean and 1 / deviation
    with_value_type(input, [&](auto zero) {
      using Value = decltype(zero);
      using Real = RealOf<Value>;
      const auto statistics = statistics_of<Value>(input, rows);
      update_running<Real>(statistics, rows, options.momentum, running_mean, running_variance);
      const auto channels = static_cast<std::size_t>(rows.channels);
      auto* mean = saved.mutable_data_ptr<double>();
      auto* inverse = mean + channels;
      std::vector<Real> scale(channels), offset(channels);
      const auto* gamma = weight.const_data_ptr<Real>();
      const auto* beta = bias.const_data_ptr<Real>();
      for (std::size_t c = 0; c < channels; ++c) {
        mean[c] = statistics.mean[c];
        inverse[c] = 1 / std::sqrt(statistics.variance[c] + options.epsilon);
        scale[c] = static_cast<Real>(double{gamma[c]} * inverse[c]);
        offset[c] = static_cast<Real>(double{beta[c]} - mean[c] * double{gamma[c]} * inverse[c]);
      }
      const auto *x = data_of<Value>(input), *added = data_of<Value>(residual);
      auto* y = mutable_data_of<Value>(output);
      for_each_part(rows, [&](std::int64_t, std::int64_t first, std::size_t count) {
        const auto at = first * rows.channels;
        normalise_rows(x + at, at_row(added, at), count, channels, scale.data(), offset.data(),
                       options.with_relu, y + at);
      });
    });
    context->save_for_backward({input, weight, saved, options.with_relu ? output : Tensor()});
    context->saved_data["has_residual"] = residual.defined();
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto variables = context->get_saved_variables();
    const auto &input = variables[0], &weight = variables[1], &saved = variables[2], &output = variables[3];
    const bool has_residual = context->saved_data["has_residual"].toBool();
    const auto gradient = gradients[0].contiguous(torch::MemoryFormat::ChannelsLast);
    const auto rows = rows_of(input);
    auto input_gradient = torch::empty_like(input);
    auto residual_gradient = has_residual ? torch::empty_like(input) : Tensor();
    auto weight_gradient = torch::empty_like(weight), bias_gradient = torch::empty_like(weight);
    with_value_type(input, [&](auto zero) {
      using Value = decltype(zero);
      using Real = RealOf<Value>;
      const auto channels = static_cast<std::size_t>(rows.channels);
      const auto *mean = saved.const_data_ptr<double>(), *inverse = mean + channels;
      const auto *dy = data_of<Value>(gradient), *y = data_of<Value>(output), *x = data_of<Value>(input);
      const std::vector<Real> centre(mean, mean + channels);
      const auto [sums, products] =
          sums_by_channel(rows, [&](std::int64_t first, std::size_t count, double* sum, double* product) {
            const auto at = first * rows.channels;
            add_gradient_sums(dy + at, at_row(y, at), x + at, count, channels, centre.data(), sum, product);
          });
      // dx = gamma / deviation * (g - mean(g) - (x - mean) / variance * mean(g (x - mean))). The kernels
      // subtract the mean rounded to Real; `rounding` puts the rest back.
      std::vector<Real> a(channels), b(channels), d(channels);
      const auto* gamma = weight.const_data_ptr<Real>();
      const auto n = static_cast<double>(rows.count);
      for (std::size_t c = 0; c < channels; ++c) {
        const double rounding = double{centre[c]} - mean[c];
        const double product = products[c] + rounding * sums[c];
        const double factor = double{gamma[c]} * inverse[c];
        const double slope = -factor * inverse[c] * inverse[c] * product / n;
        a[c] = static_cast<Real>(factor);
        b[c] = static_cast<Real>(slope);
        d[c] = static_cast<Real>(slope * rounding - factor * sums[c] / n);
        weight_gradient.mutable_data_ptr<Real>()[c] = static_cast<Real>(product * inverse[c]);
        bias_gradient.mutable_data_ptr<Real>()[c] = static_cast<Real>(sums[c]);
      }
      auto *dx = mutable_data_of<Value>(input_gradient), *dr = mutable_data_of<Value>(residual_gradient);
      const InputGradientFactors<Value> factors{a.data(), b.data(), d.data(), centre.data()};
      for_each_part(rows, [&](std::int64_t, std::int64_t first, std::size_t count) {
        const auto at = first * rows.channels;
        write_input_gradient(dy + at, at_row(y, at), x + at, count, channels, factors, dx + at,
                             at_row(dr, at));
      });
    });
    return {input_gradient, weight_gradient, bias_gradient, residual_gradient, Tensor(), Tensor(), Tensor()};
  }
};

bool is_one_pass_case(const torch::nn::BatchNorm2dImpl& norm, const Tensor& input) {
  const auto type = input.scalar_type();
  const auto real = type == torch::kBFloat16 ? torch::kFloat : type;
  return norm.is_training() && input.is_cpu() &&
         (type == torch::kFloat || type == torch::kDouble || type == torch::kBFloat16) &&
         input.is_contiguous(torch::MemoryFormat::ChannelsLast) && norm.weight.scalar_type() == real &&
         input.numel() > input.size(1);
}

}  // namespace

Tensor batch_norm_relu(torch::nn::BatchNorm2dImpl& norm, const Tensor& input, const Tensor& residual,
                       bool with_relu) {
  if (!is_one_pass_case(norm, input)) {
    auto output = norm.forward(input);
    if (residual.defined()) output += residual;
    return with_relu ? output.relu_() : output;
  }
  {
    torch::NoGradGuard no_grad;
    norm.num_batches_tracked += 1;
  }
  SSD_EXPECT(!residual.defined() ||
             (residual.sizes() == input.sizes() && residual.scalar_type() == input.scalar_type() &&
              residual.device() == input.device()));
  std::optional<Tensor> added;
  if (residual.defined()) added = residual.contiguous(torch::MemoryFormat::ChannelsLast);
  return BatchNormRelu::apply(input, norm.weight, norm.bias, added, norm.running_mean, norm.running_var,
                              NormOptions{norm.options.eps(), norm.options.momentum().value(), with_relu});
}

}  // namespace ssd
