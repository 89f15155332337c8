// Pieces of vector loops, compiled once for each vector unit: included by source files that
// <hwy/foreach_target.h> includes again (core/simd.hpp). A block is 128 bits, the part of a vector within
// which cheap permutations stay. No include guard but Highway's toggle.
#if defined(SSD_IMAGE_SIMD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SSD_IMAGE_SIMD_INL
#undef SSD_IMAGE_SIMD_INL
#else
#define SSD_IMAGE_SIMD_INL
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ssd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lane i of the result: a[2 i] b[2 i] + a[2 i + 1] b[2 i + 1], in 32 bits.
template <class Shorts>
HWY_INLINE hn::Vec<hn::Repartition<std::int32_t, Shorts>> sums_of_products(Shorts, hn::Vec<Shorts> a,
                                                                           hn::Vec<Shorts> b) {
  const hn::Repartition<std::int32_t, Shorts> ints;
  auto odd = hn::Zero(ints);
  const auto even = hn::ReorderWidenMulAccumulate(ints, a, b, hn::Zero(ints), odd);
  return hn::RearrangeToOddPlusEven(even, odd);
}

// Two 16-bit factors in turn.
template <class Shorts>
HWY_INLINE hn::Vec<Shorts> factors_in_turn(Shorts shorts, std::int32_t first, std::int32_t second) {
  const auto both = (static_cast<std::uint32_t>(second) << 16) | (static_cast<std::uint32_t>(first) & 0xffff);
  return hn::BitCast(shorts,
                     hn::Set(hn::Repartition<std::int32_t, Shorts>(), static_cast<std::int32_t>(both)));
}

// A vector of one block or two, each from or to a place of its own.
template <class D, class Lane = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_blocks(D d, const Lane* first, [[maybe_unused]] const Lane* second) {
  constexpr std::size_t kBlockLanes = 16 / sizeof(Lane);
  if constexpr (hn::MaxLanes(D()) == kBlockLanes) {
    return hn::LoadU(d, first);
  } else {
    static_assert(hn::MaxLanes(D()) == 2 * kBlockLanes);
    const hn::Half<D> half;
    return hn::Combine(d, hn::LoadU(half, second), hn::LoadU(half, first));
  }
}
template <class D, class Lane = hn::TFromD<D>>
HWY_INLINE void store_blocks(D d, hn::Vec<D> values, Lane* first, [[maybe_unused]] Lane* second) {
  constexpr std::size_t kBlockLanes = 16 / sizeof(Lane);
  if constexpr (hn::MaxLanes(D()) == kBlockLanes) {
    hn::StoreU(values, d, first);
  } else {
    static_assert(hn::MaxLanes(D()) == 2 * kBlockLanes);
    const hn::Half<D> half;
    hn::StoreU(hn::LowerHalf(half, values), half, first);
    hn::StoreU(hn::UpperHalf(half, values), half, second);
  }
}

// Of each block the lower eight bytes.
template <class D>
HWY_INLINE void store_lower_halves(D, hn::Vec<D> values, std::uint8_t* first,
                                   [[maybe_unused]] std::uint8_t* second) {
  const hn::FixedTag<std::uint8_t, 8> eight;
  if constexpr (hn::MaxLanes(D()) == 16) {
    hn::StoreU(hn::LowerHalf(eight, values), eight, first);
  } else {
    const hn::Half<D> half;
    hn::StoreU(hn::LowerHalf(eight, hn::LowerHalf(half, values)), eight, first);
    hn::StoreU(hn::LowerHalf(eight, hn::UpperHalf(half, values)), eight, second);
  }
}

}  // namespace ssd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
