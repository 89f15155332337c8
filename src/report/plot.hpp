// A line plot as an SVG file: axes with round ticks, grid, legend, title. For loss and AP curves. Pure but
// for write_plot and write_plots.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace ssd {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct PlotSeries {
  std::string label;              // in the legend
  std::vector<PlotPoint> points;  // in the order they are joined; one that is not finite leaves a gap
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<PlotSeries> series;
  std::vector<PlotPoint> shown = {};  // the axes reach to these too, which are not drawn
};

std::string svg_of(const Plot& plot);

// Several plots in one file, one below the other.
std::string stacked_svg_of(std::span<const Plot> plots);

// Whole or not at all. Throws Error where the file cannot be written.
void write_plots(const std::filesystem::path& path, std::span<const Plot> plots);
void write_plot(const std::filesystem::path& path, const Plot& plot);

// About count round values (1, 2 or 5 times a power of ten apart) that lie within [low, high].
std::vector<double> round_ticks(double low, double high, int count);

}  // namespace ssd
