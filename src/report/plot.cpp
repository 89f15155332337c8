#include "report/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/atomic_file.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

// All in SVG user units (pixels).
constexpr double kWidth = 800;
constexpr double kHeight = 500;
constexpr double kLeft = 75;
constexpr double kRight = 25;
constexpr double kTop = 45;
constexpr double kBottom = 60;
constexpr std::size_t kMostMarkers = 50;  // a series of more points is a line alone

// Colours that people with any kind of colour vision tell apart: Okabe and Ito, "Color Universal Design",
// 2008.
constexpr std::array<const char*, 7> kColours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                              "#E69F00", "#56B4E9", "#000000"};

struct Axis {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }

  // An axis of no points, or of one value (but for rounding), gets a length.
  void settle() {
    if (low > high) *this = {0, 1};
    const double size = std::max(std::abs(low), std::abs(high));
    if (high - low <= 1e-9 * size) {
      const double margin = size == 0 ? 1 : size / 2;
      low -= margin;
      high += margin;
    }
  }

  double part(double value) const { return (value - low) / (high - low); }
};

// Finite, and small enough that the length of an axis is finite too.
bool is_drawable(const PlotPoint& point) {
  return std::abs(point.x) < 1e300 && std::abs(point.y) < 1e300;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char character : text) {
    switch (character) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        // XML has no way to write the other control characters.
        if (static_cast<unsigned char>(character) >= 0x20 || character == '\t') result += character;
    }
  }
  return result;
}

class SvgPlot {
 public:
  explicit SvgPlot(const Plot& plot) : plot_(plot) {
    for (const auto& series : plot.series) {
      for (const auto& point : series.points) {
        if (!is_drawable(point)) continue;
        x_.include(point.x);
        y_.include(point.y);
      }
    }
    for (const auto& point : plot.shown) {
      x_.include(point.x);
      y_.include(point.y);
    }
    x_.settle();
    y_.settle();
  }

  std::string draw() {
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
        kWidth, kHeight);
    draw_axes();
    for (std::size_t i = 0; i < plot_.series.size(); ++i)
      draw_series(plot_.series[i], kColours[i % kColours.size()]);
    draw_legend();
    return svg_ + "</svg>\n";
  }

 private:
  double place_x(double x) const { return kLeft + x_.part(x) * (kWidth - kLeft - kRight); }
  double place_y(double y) const { return kHeight - kBottom - y_.part(y) * (kHeight - kTop - kBottom); }

  void line(double x1, double y1, double x2, double y2, const char* colour) {
    svg_ += fmt::format("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"{}\"/>\n", x1,
                        y1, x2, y2, colour);
  }

  void text(double x, double y, std::string_view words, std::string_view attributes) {
    svg_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" {}>{}</text>\n", x, y, attributes, escaped(words));
  }

  void draw_axes() {
    const double right = kWidth - kRight;
    const double bottom = kHeight - kBottom;
    for (const double tick : round_ticks(x_.low, x_.high, 8)) {
      line(place_x(tick), kTop, place_x(tick), bottom, "#dddddd");
      text(place_x(tick), bottom + 18, fmt::format("{:g}", tick), "text-anchor=\"middle\"");
    }
    for (const double tick : round_ticks(y_.low, y_.high, 6)) {
      line(kLeft, place_y(tick), right, place_y(tick), "#dddddd");
      text(kLeft - 8, place_y(tick) + 4, fmt::format("{:g}", tick), "text-anchor=\"end\"");
    }
    line(kLeft, bottom, right, bottom, "black");
    line(kLeft, kTop, kLeft, bottom, "black");
    text((kLeft + right) / 2, 26, plot_.title, "text-anchor=\"middle\" font-size=\"17\"");
    text((kLeft + right) / 2, kHeight - 16, plot_.x_label, "text-anchor=\"middle\"");
    const double middle = (kTop + bottom) / 2;
    text(18, middle, plot_.y_label,
         fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 18 {:.2f})\"", middle));
  }

  void draw_series(const PlotSeries& series, const char* colour) {
    const bool is_long = series.points.size() > kMostMarkers;
    std::string run;  // points without a gap
    const auto end_run = [&] {
      if (!run.empty()) {
        svg_ += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" points=\"{}\"/>\n",
                            colour, is_long ? 1 : 2, run);
      }
      run.clear();
    };
    for (const auto& point : series.points) {
      if (!is_drawable(point)) {
        end_run();
        continue;
      }
      run += fmt::format("{}{:.2f},{:.2f}", run.empty() ? "" : " ", place_x(point.x), place_y(point.y));
    }
    end_run();
    if (is_long) return;
    for (const auto& point : series.points) {
      if (!is_drawable(point)) continue;
      svg_ += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3\" fill=\"{}\"/>\n", place_x(point.x),
                          place_y(point.y), colour);
    }
  }

  // Left and top of the legend, in the corner where it hides the fewest points.
  std::pair<double, double> legend_corner(double width, double height) const {
    constexpr double kGap = 12;  // nearer points count as hidden
    std::pair<double, double> best;
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    for (const double left : {kWidth - kRight - width - 8, kLeft + 8}) {
      for (const double top : {kTop + 8, kHeight - kBottom - height - 8}) {
        std::size_t hidden = 0;
        for (const auto& series : plot_.series) {
          hidden += static_cast<std::size_t>(
              std::count_if(series.points.begin(), series.points.end(), [&](const PlotPoint& point) {
                return is_drawable(point) &&
                       std::abs(place_x(point.x) - left - width / 2) < width / 2 + kGap &&
                       std::abs(place_y(point.y) - top - height / 2) < height / 2 + kGap;
              }));
        }
        if (hidden >= fewest) continue;
        fewest = hidden;
        best = {left, top};
      }
    }
    return best;
  }

  void draw_legend() {
    const auto longest =
        std::max_element(plot_.series.begin(), plot_.series.end(),
                         [](const auto& a, const auto& b) { return a.label.size() < b.label.size(); });
    if (longest == plot_.series.end() || longest->label.empty()) return;
    const double width = 45 + 7.5 * static_cast<double>(longest->label.size());
    const double height = 10 + 18 * static_cast<double>(plot_.series.size());
    const auto [left, top] = legend_corner(width, height);
    svg_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"white\" "
        "fill-opacity=\"0.85\" "
        "stroke=\"#aaaaaa\"/>\n",
        left, top, width, height);
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      const double y = top + 14 + 18 * static_cast<double>(i);
      svg_ += fmt::format(
          "<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"{}\" "
          "stroke-width=\"2.5\"/>\n",
          left + 8, y, left + 30, y, kColours[i % kColours.size()]);
      text(left + 36, y + 4, plot_.series[i].label, "text-anchor=\"start\"");
    }
  }

  const Plot& plot_;
  Axis x_;
  Axis y_;
  std::string svg_;
};

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  SSD_EXPECT(low < high && count > 0);
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double factor = rough / power;
  const double step = power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
  constexpr double kSlack = 1e-9;  // of a step: ends that miss a round value by rounding count as it
  std::vector<double> ticks;
  const double last = std::floor(high / step + kSlack);
  const double first = std::ceil(low / step - kSlack);
  for (int i = 0; i <= 2 * count && first + i <= last; ++i)
    ticks.push_back(first + i == 0 ? 0 : (first + i) * step);
  return ticks;
}

std::string svg_of(const Plot& plot) {
  return SvgPlot(plot).draw();
}

std::string stacked_svg_of(std::span<const Plot> plots) {
  auto svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n",
      kWidth, kHeight * static_cast<double>(plots.size()));
  for (std::size_t i = 0; i < plots.size(); ++i)
    svg += fmt::format("<g transform=\"translate(0 {})\">\n{}</g>\n", kHeight * static_cast<double>(i),
                       svg_of(plots[i]));
  return svg + "</svg>\n";
}

void write_plots(const std::filesystem::path& path, std::span<const Plot> plots) {
  write_file_atomically(path, stacked_svg_of(plots));
}

void write_plot(const std::filesystem::path& path, const Plot& plot) {
  write_file_atomically(path, svg_of(plot));
}

}  // namespace ssd
