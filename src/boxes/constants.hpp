// The numbers of SSD300's default boxes, of matching and of suppression, each with its source.
// "Liu" is Liu et al., "SSD: Single Shot MultiBox Detector", ECCV 2016; "reference" is SSD300 v1.1 for
// PyTorch of NVIDIA's DeepLearningExamples, whose values are kept where the two differ.
#pragma once

#include <array>

namespace ssd {

inline constexpr int kMapCount = 6;  // feature maps that predict; Liu, figure 2

// Cells along a side of each map; Liu, figure 2.
inline constexpr std::array<int, kMapCount> kMapSides = {38, 19, 10, 5, 3, 1};

// Input pixels from one cell to the next; reference (a map's cells are 300/step to a side, not kMapSides).
inline constexpr std::array<int, kMapCount> kMapSteps = {8, 16, 32, 64, 100, 300};

// Side of the square box of each map in input pixels, one more for the geometric means; reference: .07, then
// .15 to .87 of the input in equal steps, rounded down (Liu, equation 4, with the extra small scale for COCO,
// section 3.4).
inline constexpr std::array<int, kMapCount + 1> kBoxScales = {21, 45, 99, 153, 207, 261, 315};

// Aspect ratios besides 1, each taken with its inverse; 0: none. Liu, section 2.2 (3 is left out on the first
// map and on the last two: section 3.1).
inline constexpr std::array<std::array<int, 2>, kMapCount> kAspectRatios = {
    {{2, 0}, {2, 3}, {2, 3}, {2, 3}, {2, 0}, {2, 0}}};

// Default boxes of a cell: two squares and two for each ratio.
inline constexpr std::array<int, kMapCount> kBoxesPerCell = {4, 6, 6, 6, 4, 4};

inline constexpr int kDefaultBoxCount = 8732;  // Liu, section 3.1; a test adds it up

// "Variances" that offsets are divided by; the Caffe code of Liu et al., and the reference's scale_xy and
// scale_wh.
inline constexpr float kCentreVariance = 0.1F;
inline constexpr float kSizeVariance = 0.2F;

// A default box is positive where its IoU is above this; Liu, section 2.2 "Matching strategy".
inline constexpr float kMatchIouThreshold = 0.5F;

// Detections: only scores above this are looked at, the best so many of a class go into suppression, a box
// stays while its IoU with better ones is below the threshold, and the best so many of an image are put out.
// Reference (Liu, section 2.2 "Inference" has .01, .45 and 200).
inline constexpr float kScoreThreshold = 0.05F;
inline constexpr int kNmsCandidatesPerClass = 200;
inline constexpr float kNmsIouThreshold = 0.5F;
inline constexpr int kMaxDetections = 200;

}  // namespace ssd
