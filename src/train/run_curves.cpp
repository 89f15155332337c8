#include "train/run_curves.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace ssd {
namespace {

PlotPoint precision_point(double epochs_trained, double precision) {
  return {epochs_trained, precision < 0 ? std::numeric_limits<double>::quiet_NaN() : precision};
}

}  // namespace

RunCurves::RunCurves(std::filesystem::path path) : path_(std::move(path)) {
  write();
}

void RunCurves::add_loss(double epochs_trained, double loss) {
  loss_.points.push_back({epochs_trained, loss});
}

void RunCurves::add_evaluation(double epochs_trained, double ap, double ap50) {
  ap_.points.push_back(precision_point(epochs_trained, ap));
  ap50_.points.push_back(precision_point(epochs_trained, ap50));
}

void RunCurves::write() const {
  // Both from 0, over the same epochs.
  constexpr double kLeastPrecision = 0.1;  // at the top of the axis
  double last = 1;
  for (const auto* series : {&loss_, &ap_}) {
    if (!series->points.empty()) last = std::max(last, series->points.back().x);
  }
  const std::array plots{Plot{"Training loss", "epochs trained", "loss", {loss_}, {{0, 0}, {last, 0}}},
                         Plot{"Evaluation",
                              "epochs trained",
                              "average precision",
                              {ap_, ap50_},
                              {{0, 0}, {last, kLeastPrecision}}}};
  write_plots(path_, plots);
}

}  // namespace ssd
