// COCO evaluation of a model over a split, spread over ranks: each rank runs and matches its own images, rank
// 0 accumulates. The evaluation batch is fixed and its tail padded, so the numbers do not depend on the
// number of ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coco/accumulate.hpp"
#include "coco/detections.hpp"
#include "coco/match.hpp"
#include "coco/summary.hpp"
#include "comm/mpi_comm.hpp"
#include "data/loader.hpp"
#include "model/ssd300.hpp"
#include "record/shard_set.hpp"
#include "train/compute_plan.hpp"

namespace ssd {

struct EvaluationReport {
  Summary summary{};
  std::vector<CategorySummary> categories;
  std::vector<Detection> detections;  // of all images, in the order of the set
  std::size_t image_count = 0;        // that were run
  double detection_seconds = 0;       // network and matching, in which training waits
  double scoring_seconds = 0;         // which may run beside it
};

// What the ranks found, matched, on rank 0.
struct GatheredDetections {
  std::vector<std::vector<std::byte>> outcomes;    // MatchOutcomes of each rank
  std::vector<std::vector<std::byte>> detections;  // Detection arrays of each rank
  std::size_t image_count = 0;
  double seconds = 0;
};

class Evaluator {
 public:
  // label_category_ids: of the network's labels 1, 2, ...; detections of categories that the set does not
  // have are kept, but not scored. The set must outlive the evaluator. Local.
  Evaluator(const ShardSet& set, std::vector<CategoryId> label_category_ids, int batch_size,
            EvaluationRecords records);

  // Collective; the model's weights and buffers must be equal on all ranks. Leaves the model in the mode it
  // was in, also when it throws. The result is on rank 0, nothing elsewhere.
  std::optional<GatheredDetections> detect(Ssd300& model, const ComputePlan& plan,
                                           const MpiComm& world) const;

  // Local, from any thread: no torch, nothing of the model.
  EvaluationReport score(const GatheredDetections& gathered) const;

 private:
  std::vector<Detection> detect_own_images(Ssd300& model, const ComputePlan& plan, const MpiComm& world,
                                           std::vector<ImageId>& own_images) const;

  const ShardSet& set_;
  std::vector<CategoryId> label_category_ids_;
  int batch_size_;
  EvaluationRecords records_;
  EvaluationParameters parameters_;
  GroundTruth ground_truth_;
  std::vector<CategoryId> category_ids_;  // of the set, ascending
};

// "Average Precision ..." in twelve lines and "Current AP: 0.25000".
std::string format_report(const EvaluationReport& report);

}  // namespace ssd
