#include "train/run_curves.hpp"

#include <array>
#include <limits>

namespace ssd {
namespace {

PlotPoint precision_point(double epochs_trained, double precision) {
  return {epochs_trained, precision < 0 ? std::numeric_limits<double>::quiet_NaN() : precision};
}

}  // namespace

RunCurves::RunCurves(std::filesystem::path path) : path_(std::move(path)) { write(); }

void RunCurves::add_loss(double epochs_trained, double loss) { loss_.points.push_back({epochs_trained, loss}); }

void RunCurves::add_evaluation(double epochs_trained, double ap, double ap50) {
  ap_.points.push_back(precision_point(epochs_trained, ap));
  ap50_.points.push_back(precision_point(epochs_trained, ap50));
}

void RunCurves::write() const {
  const std::array plots{Plot{"Training loss", "epochs trained", "loss", {loss_}},
                         Plot{"Evaluation", "epochs trained", "average precision", {ap_, ap50_}}};
  write_plots(path_, plots);
}

}  // namespace ssd
