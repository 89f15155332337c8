// From Y, Cb and Cr to R, G and B with vectors of 16-bit numbers, for jpeg_blocks.cpp and jpeg_upsample.cpp:
// JFIF 1.02 with 16 bits behind the point, the numbers of libjpeg-turbo. No include guard but Highway's
// toggle.
#if defined(SSD_IMAGE_JPEG_COLORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SSD_IMAGE_JPEG_COLORS_INL
#undef SSD_IMAGE_JPEG_COLORS_INL
#else
#define SSD_IMAGE_JPEG_COLORS_INL
#endif

#include "image/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace ssd::HWY_NAMESPACE {

// value * kFactor / 65536, rounded: twice the value keeps a bit for the rounding.
template <std::int16_t kFactor, class D>
HWY_INLINE hn::Vec<D> rounded_product(D shorts, hn::Vec<D> value) {
  const auto twice = hn::MulHigh(hn::Add(value, value), hn::Set(shorts, kFactor));
  return hn::ShiftRight<1>(hn::Add(twice, hn::Set(shorts, std::int16_t{1})));
}

template <class D>
struct RgbVectors {
  hn::Vec<D> red, green, blue;
};

// luma: Y. blue, red: Cb and Cr minus 128. Not yet clamped to 0 to 255.
template <class D>
HWY_INLINE RgbVectors<D> rgb_of(D shorts, hn::Vec<D> luma, hn::Vec<D> blue, hn::Vec<D> red) {
  constexpr auto fixed = [](double value) { return static_cast<std::int32_t>(value * 65536 + 0.5); };
  constexpr std::int32_t kOne = 65536;
  const hn::Repartition<std::int32_t, D> ints;
  const auto green_factors = factors_in_turn(shorts, -fixed(0.34414), kOne - fixed(0.71414));
  const auto green_part = [&](hn::Vec<D> both) HWY_ATTR {
    return hn::ShiftRight<16>(
        hn::Add(sums_of_products(shorts, both, green_factors), hn::Set(ints, kOne / 2)));
  };
  const auto green = hn::ReorderDemote2To(shorts, green_part(hn::InterleaveLower(shorts, blue, red)),
                                          green_part(hn::InterleaveUpper(shorts, blue, red)));
  return {
      hn::Add(hn::Add(luma, red), rounded_product<fixed(1.40200) - kOne>(shorts, red)),
      hn::Add(hn::Sub(luma, red), green),
      hn::Add(hn::Add(luma, hn::Add(blue, blue)), rounded_product<fixed(1.77200) - 2 * kOne>(shorts, blue))};
}

}  // namespace ssd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
