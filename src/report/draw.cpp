#include "report/draw.hpp"

#include <cairo.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/error.hpp"

namespace ssd {
namespace {

// In parts of the longer side of a panel.
constexpr double kLinePart = 1.0 / 320;
constexpr double kFontPart = 1.0 / 46;
constexpr double kTitleFontFactor = 1.25;  // of the font of the boxes
constexpr double kLabelOpacity = 0.8;      // what lies under a label shines through

struct CairoDelete {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_t* context) const { cairo_destroy(context); }
};
using Surface = std::unique_ptr<cairo_surface_t, CairoDelete>;
using Context = std::unique_ptr<cairo_t, CairoDelete>;

void check_cairo(cairo_status_t status, const char* call) {
  if (status != CAIRO_STATUS_SUCCESS) throw LibraryError("cairo", call, cairo_status_to_string(status));
}

// One pixel is a native 32-bit number 0x00RRGGBB; rows are a whole number of them apart.
Surface make_surface(int width, int height) {
  Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height));
  check_cairo(cairo_surface_status(surface.get()), "cairo_image_surface_create");
  return surface;
}

std::uint32_t* row_of(cairo_surface_t* surface, int y) {
  return reinterpret_cast<std::uint32_t*>(cairo_image_surface_get_data(surface) +
                                          std::ptrdiff_t{y} * cairo_image_surface_get_stride(surface));
}

Surface surface_of(const RgbImage& picture) {
  auto surface = make_surface(picture.width, picture.height);
  cairo_surface_flush(surface.get());
  const std::uint8_t* rgb = picture.pixels.data();
  for (int y = 0; y < picture.height; ++y) {
    std::uint32_t* row = row_of(surface.get(), y);
    for (int x = 0; x < picture.width; ++x, rgb += 3)
      row[x] = std::uint32_t{rgb[0]} << 16 | std::uint32_t{rgb[1]} << 8 | rgb[2];
  }
  cairo_surface_mark_dirty(surface.get());
  return surface;
}

RgbImage picture_of(cairo_surface_t* surface) {
  cairo_surface_flush(surface);
  RgbImage picture{cairo_image_surface_get_width(surface), cairo_image_surface_get_height(surface), {}};
  picture.pixels.resize(static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height) *
                        3);
  std::uint8_t* rgb = picture.pixels.data();
  for (int y = 0; y < picture.height; ++y) {
    const std::uint32_t* row = row_of(surface, y);
    for (int x = 0; x < picture.width; ++x, rgb += 3) {
      rgb[0] = static_cast<std::uint8_t>(row[x] >> 16);
      rgb[1] = static_cast<std::uint8_t>(row[x] >> 8);
      rgb[2] = static_cast<std::uint8_t>(row[x]);
    }
  }
  return picture;
}

void set_class_color(cairo_t* context, std::int32_t label, double opacity) {
  const auto [red, green, blue] = class_color(label);
  cairo_set_source_rgba(context, red / 255.0, green / 255.0, blue / 255.0, opacity);
}

// Black or white, whichever reads better on the class's colour.
void set_text_color(cairo_t* context, std::int32_t label) {
  const auto [red, green, blue] = class_color(label);
  const double level = 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? 0 : 1;  // luma of ITU-R BT.601
  cairo_set_source_rgb(context, level, level, level);
}

double width_of(cairo_t* context, const std::string& text) {
  cairo_text_extents_t extents;
  cairo_text_extents(context, text.c_str(), &extents);
  return extents.x_advance;
}

// Everything on one surface: titles, panels, legend, all in pixels of the surface.
class Drawing {
 public:
  Drawing(const RgbImage& picture, std::span<const Panel> panels, std::span<const LegendEntry> legend)
      : panels_(panels), legend_(legend), photo_(surface_of(picture)) {
    const double side = std::max(picture.width, picture.height);
    scale_ = std::clamp(side, double{kLeastSide}, double{kMostSide}) / side;
    panel_width_ = std::max(1.0, std::round(picture.width * scale_));
    panel_height_ = std::max(1.0, std::round(picture.height * scale_));
    const double shown_side = std::max(panel_width_, panel_height_);
    line_ = shown_side * kLinePart;
    font_ = shown_side * kFontPart;
    gap_ = std::round(2 * line_);
    title_height_ = std::round(2 * font_);
  }

  RgbImage draw() {
    const auto count = static_cast<double>(panels_.size());
    const double width = count * panel_width_ + (count - 1) * gap_;
    const auto places = place_legend(width);
    const double legend_height = places.empty() ? 0 : places.back()[1] + 2 * font_;
    const double height = title_height_ + panel_height_ + std::round(legend_height);
    surface_ = make_surface(static_cast<int>(width), static_cast<int>(height));
    start_context(surface_.get());
    cairo_set_source_rgb(context(), 1, 1, 1);
    cairo_paint(context());
    for (std::size_t i = 0; i < panels_.size(); ++i)
      draw_panel(panels_[i], static_cast<double>(i) * (panel_width_ + gap_));
    draw_legend(places, title_height_ + panel_height_);
    check_cairo(cairo_status(context()), "drawing");
    return picture_of(surface_.get());
  }

 private:
  cairo_t* context() { return context_.get(); }

  void start_context(cairo_surface_t* surface) {
    context_.reset(cairo_create(surface));
    check_cairo(cairo_status(context()), "cairo_create");
    cairo_select_font_face(context(), "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  }

  void draw_panel(const Panel& panel, double left) {
    cairo_save(context());
    cairo_translate(context(), left, 0);
    cairo_rectangle(context(), 0, 0, panel_width_, title_height_ + panel_height_);
    cairo_clip(context());
    cairo_set_font_size(context(), font_ * kTitleFontFactor);
    cairo_set_source_rgb(context(), 0, 0, 0);
    cairo_move_to(context(), font_ / 2, 1.4 * font_);
    cairo_show_text(context(), panel.title.c_str());

    cairo_translate(context(), 0, title_height_);
    cairo_rectangle(context(), 0, 0, panel_width_, panel_height_);
    cairo_clip(context());
    cairo_save(context());
    cairo_scale(context(), scale_, scale_);
    cairo_set_source_surface(context(), photo_.get(), 0, 0);
    cairo_pattern_set_extend(cairo_get_source(context()),
                             CAIRO_EXTEND_PAD);  // no white rim where it is scaled
    cairo_paint(context());
    cairo_restore(context());

    cairo_set_font_size(context(), font_);
    for (auto box = panel.boxes.rbegin(); box != panel.boxes.rend(); ++box) draw_outline(*box);
    for (auto box = panel.boxes.rbegin(); box != panel.boxes.rend(); ++box) draw_label(*box);
    cairo_restore(context());
  }

  // Two strokes: a dark one shows on what has the colour of the class.
  void draw_outline(const DrawnBox& box) {
    const auto [x, y, width, height] = box.box_xywh;
    cairo_rectangle(context(), x * scale_, y * scale_, width * scale_, height * scale_);
    cairo_set_source_rgba(context(), 0, 0, 0, 0.6);
    cairo_set_line_width(context(), 1.6 * line_);
    cairo_stroke_preserve(context());
    set_class_color(context(), box.label, 1);
    cairo_set_line_width(context(), line_);
    cairo_stroke(context());
  }

  void draw_label(const DrawnBox& box) {
    if (box.text.empty()) return;
    const double pad = font_ / 5;
    const double width = width_of(context(), box.text) + 2 * pad;
    const double height = 1.25 * font_;
    const double left =
        std::clamp(box.box_xywh[0] * scale_ - line_ / 2, 0.0, std::max(0.0, panel_width_ - width));
    const double edge = std::max(box.box_xywh[1] * scale_, 0.0);
    const double top = edge >= height ? edge - height : edge;  // above the box where there is room
    cairo_rectangle(context(), left, top, width, height);
    set_class_color(context(), box.label, kLabelOpacity);
    cairo_fill(context());
    set_text_color(context(), box.label);
    cairo_move_to(context(), left + pad, top + font_);
    cairo_show_text(context(), box.text.c_str());
  }

  // Left and top of each entry within the legend, in lines as wide as the drawing.
  std::vector<std::array<double, 2>> place_legend(double drawing_width) {
    const auto scratch = make_surface(1, 1);  // letters have to be measured before there is a drawing
    start_context(scratch.get());
    cairo_set_font_size(context(), font_);
    std::vector<std::array<double, 2>> places;
    double x = font_ / 2, y = 0;
    for (const auto& entry : legend_) {
      const double width = width_of(context(), entry.text) + 3.5 * font_;
      if (x + width > drawing_width && !places.empty() && x > font_) {
        x = font_ / 2;
        y += 1.6 * font_;
      }
      places.push_back({x, y});
      x += width;
    }
    return places;
  }

  void draw_legend(const std::vector<std::array<double, 2>>& places, double top) {
    cairo_set_font_size(context(), font_);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double x = places[i][0], y = top + places[i][1] + 0.5 * font_;
      cairo_rectangle(context(), x, y, 1.6 * font_, font_);
      set_class_color(context(), legend_[i].label, 1);
      cairo_fill(context());
      cairo_set_source_rgb(context(), 0, 0, 0);
      cairo_move_to(context(), x + 2.1 * font_, y + 0.85 * font_);
      cairo_show_text(context(), legend_[i].text.c_str());
    }
  }

  std::span<const Panel> panels_;
  std::span<const LegendEntry> legend_;
  Surface photo_;
  Surface surface_;
  Context context_;
  double scale_ = 1;  // pixels of the drawing to one of the picture
  double panel_width_ = 0, panel_height_ = 0, title_height_ = 0;
  double line_ = 0, font_ = 0, gap_ = 0;
};

// Hue, saturation and value, all in [0,1].
std::array<std::uint8_t, 3> rgb_of_hsv(double hue, double saturation, double value) {
  const auto channel = [&](double shift) {
    const double place = std::fmod(hue * 6 + shift, 6);
    const double part = std::clamp(std::min(place, 4 - place), 0.0, 1.0);
    return static_cast<std::uint8_t>(std::lround(255 * value * (1 - saturation * part)));
  };
  return {channel(5), channel(3), channel(1)};
}

}  // namespace

std::array<std::uint8_t, 3> class_color(std::int32_t label) {
  // Okabe and Ito, "Color Universal Design", 2008, without black.
  constexpr std::array<std::array<std::uint8_t, 3>, 7> kColors{{{0x00, 0x72, 0xB2},
                                                                {0xD5, 0x5E, 0x00},
                                                                {0x00, 0x9E, 0x73},
                                                                {0xF0, 0xE4, 0x42},
                                                                {0xCC, 0x79, 0xA7},
                                                                {0x56, 0xB4, 0xE9},
                                                                {0xE6, 0x9F, 0x00}}};
  const auto place = static_cast<std::size_t>(std::max(label - 1, 0));
  if (place < kColors.size()) return kColors[place];
  // Hues a golden section of the circle apart never come back; two neighbours differ in strength too.
  constexpr double kGoldenSection = 0.6180339887498949;
  const double hue = std::fmod(static_cast<double>(place) * kGoldenSection, 1);
  return rgb_of_hsv(hue, place % 2 == 0 ? 0.95 : 0.6, place % 3 == 0 ? 0.75 : 1);
}

RgbImage draw_panels(const RgbImage& picture, std::span<const Panel> panels,
                     std::span<const LegendEntry> legend) {
  SSD_EXPECT(picture.width > 0 && picture.height > 0 && !panels.empty());
  return Drawing(picture, panels, legend).draw();
}

}  // namespace ssd
