#include "infer/inference.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <unordered_set>

#include "checkpoint/checkpoint.hpp"
#include "coco/detections.hpp"
#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/stopwatch.hpp"
#include "data/batch.hpp"
#include "infer/class_table.hpp"
#include "infer/detector.hpp"
#include "infer/drawn_detections.hpp"
#include "infer/read_picture.hpp"
#include "report/progress.hpp"
#include "train/decoded_detections.hpp"

namespace ssd {
namespace {

namespace fs = std::filesystem;

struct ReadPicture {
  RgbImage upright;     // pixels are kept only where they will be drawn
  std::string problem;  // empty where the picture is good
};

struct ReadBatch {
  std::size_t first = 0;  // place of its first picture in the list
  std::vector<ReadPicture> pictures;
  std::vector<std::uint8_t>
      inputs;  // (batch size, 300, 300, 3); black where there is no picture, or a bad one
};

class InferenceRun {
 public:
  InferenceRun(const InferOptions& options, const RankPlacement& placement) : options_(options) {
    if (!options_.truth.empty()) truth_ = read_annotations(options_.truth);
    list_ = list_pictures(options_.inputs, truth());
    prepare_output();
    const auto root = read_checkpoint_file(options_.checkpoint);
    classes_ = class_table(root, truth());
    for (const auto& category : classes_) category_ids_.push_back(category.id);
    detector_.emplace(root, options_, placement);
    drawer_.emplace(classes_, options_.score_threshold, truth());
    log_start();
  }

  int run() {
    const Stopwatch time;
    const auto count = list_.pictures.size();
    // The same size for every batch, so that what is found on a picture does not depend on its neighbours.
    batch_size_ = std::min(count, static_cast<std::size_t>(options_.batch_size));
    Progress progress("detecting", "pictures", count);
    // The next batch is read while this one is computed and drawn.
    std::future<ReadBatch> next;
    const auto read_ahead = [&](std::size_t first) {
      if (first < count) next = std::async(std::launch::async, [this, first] { return read_batch(first); });
    };
    read_ahead(0);
    while (next.valid()) {
      const auto batch = next.get();
      read_ahead(batch.first + batch_size_);
      take(batch);
      progress.advance(batch.pictures.size());
    }
    progress.finish();
    if (!options_.output.empty()) write_detections(options_.output, detections_);
    print_summary(time.seconds());
    for (const auto& problem : list_.problems) log_error("{}", problem);
    return list_.problems.empty() ? 0 : 1;
  }

 private:
  const AnnotationSet* truth() const { return truth_ ? &*truth_ : nullptr; }
  bool draws() const { return !options_.draw_folder.empty(); }

  // What would be found only after the work is done is looked at before it.
  void prepare_output() {
    if (!options_.output.empty()) validate_output_path(options_.output);
    if (!draws()) return;
    std::error_code error;
    fs::create_directories(options_.draw_folder, error);
    SSD_VALIDATE(!error, "--draw '{}': cannot make this folder: {}", options_.draw_folder.string(),
                 error.message());
    drawing_names_ =
        drawing_names(list_.pictures, options_.draw_format == ImageFormat::png ? ".png" : ".jpg");
    std::unordered_set<std::string> inputs;
    for (const auto& picture : list_.pictures) inputs.insert(fs::weakly_canonical(picture.path).string());
    for (const auto& name : drawing_names_) {
      SSD_VALIDATE(!inputs.contains(fs::weakly_canonical(options_.draw_folder / name).string()),
                   "--draw '{}': '{}' would replace one of the pictures; give another folder",
                   options_.draw_folder.string(), name);
    }
  }

  void log_start() const {
    log_info("checkpoint '{}': SSD300 with {}, {} classes; {}", options_.checkpoint.string(),
             backbone_name(detector_->backbone()), classes_.size(), detector_->description());
    if (truth() == nullptr) {
      log_info(
          "no --truth: image ids are 1, 2, ... in the order of the pictures, category ids are the labels 1 "
          "to {}",
          classes_.size());
    }
    if (list_.not_in_truth_count != 0) {
      log_info("{} pictures of the folders are not in '{}' and are left out", list_.not_in_truth_count,
               options_.truth.string());
    }
  }

  // In a thread of its own, one call at a time.
  ReadBatch read_batch(std::size_t first) {
    ReadBatch batch{first, {}, std::vector<std::uint8_t>(batch_size_ * kSampleBytes)};
    const auto last = std::min(first + batch_size_, list_.pictures.size());
    for (std::size_t i = first; i < last; ++i) {
      auto& picture = batch.pictures.emplace_back();
      try {
        picture.upright = reader_.read(list_.pictures[i], batch.inputs.data() + (i - first) * kSampleBytes);
        if (!draws()) picture.upright.pixels = std::vector<std::uint8_t>();  // = {} would keep them
      } catch (const Error& error) {
        picture.problem = error.what();
      }
    }
    return batch;
  }

  void take(const ReadBatch& batch) {
    const auto found = detector_->detect(batch.inputs.data(), static_cast<int>(batch_size_));
    for (std::size_t k = 0; k < batch.pictures.size(); ++k) {
      const auto& read = batch.pictures[k];
      if (!read.problem.empty()) {
        list_.problems.push_back(read.problem);
        continue;
      }
      const auto id = list_.pictures[batch.first + k].id;
      std::vector<Detection> detections;
      append_detections(found[k], id, read.upright.width, read.upright.height, category_ids_, detections);
      if (draws()) {
        write_image(options_.draw_folder / drawing_names_[batch.first + k],
                    drawer_->draw(read.upright, id, detections), options_.draw_format);
      }
      detections_.insert(detections_.end(), detections.begin(), detections.end());
      ++done_count_;
    }
  }

  void print_summary(double seconds) const {
    std::map<CategoryId, std::size_t> counts;
    for (const auto& detection : detections_) ++counts[detection.category_id];
    fmt::print("{} pictures, {} detections with a score above {} in {:.1f} s ({:.1f} pictures/s)\n",
               done_count_, detections_.size(), options_.score_threshold, seconds,
               static_cast<double>(done_count_) / seconds);
    for (const auto& category : classes_) {
      if (counts[category.id] != 0) fmt::print("  {:6} {}\n", counts[category.id], category.name);
    }
    if (!options_.output.empty()) fmt::print("detections: {}\n", options_.output.string());
    if (draws()) fmt::print("drawn: {} pictures in {}\n", done_count_, options_.draw_folder.string());
    if (!list_.problems.empty()) fmt::print("not done: {}, named below\n", list_.problems.size());
    std::fflush(stdout);
  }

  const InferOptions& options_;
  std::optional<AnnotationSet> truth_;
  PictureList list_;
  std::vector<std::string> drawing_names_;  // of the pictures, in their order
  std::vector<Category> classes_;           // in the order of their labels
  std::vector<CategoryId> category_ids_;    // theirs
  std::optional<Detector> detector_;
  std::optional<DetectionDrawer> drawer_;
  PictureReader reader_;
  std::size_t batch_size_ = 0;
  std::vector<Detection> detections_;
  std::size_t done_count_ = 0;
};

}  // namespace

int run_inference(const InferOptions& options, const MpiComm& world) {
  SSD_EXPECT(world.world_size() == 1);
  return InferenceRun(options, find_placement(world)).run();
}

}  // namespace ssd
