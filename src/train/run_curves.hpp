// The curves of a run as an SVG: loss above, AP and AP50 below, over epochs. One rank alone has them. They
// begin where this run begins: those of a run that goes on from a checkpoint have a gap before it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "report/plot.hpp"

namespace ssd {

class RunCurves {
 public:
  // Writes the file at once, empty: that it cannot be written is known before training. Throws Error, as
  // write() does.
  explicit RunCurves(std::filesystem::path path);

  // Epochs are counted as trained: 1.5 is the middle of the second.
  void add_loss(double epochs_trained, double loss);
  // -1, which stands for a set without boxes, leaves a gap.
  void add_evaluation(double epochs_trained, double ap, double ap50);

  void write() const;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  PlotSeries loss_{"loss", {}};
  PlotSeries ap_{"AP", {}};
  PlotSeries ap50_{"AP50", {}};
};

}  // namespace ssd
