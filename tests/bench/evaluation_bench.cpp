// Each stage of an evaluation, and all that is done with detections in memory, by the time of one core.
//   SSD_BENCH_GROUND_TRUTH=gt.json SSD_BENCH_RESULTS=dt.json build/default/tests/bench/bench_evaluation
// Without the variables: a made set of the shape of val2017 with 100 detections for each image.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "coco/accumulate.hpp"
#include "coco/detections.hpp"
#include "coco/evaluate.hpp"
#include "coco/match.hpp"
#include "coco/summary.hpp"
#include "core/random.hpp"

namespace ssd {
namespace {

constexpr int kImages = 5000, kBoxes = 7, kDetections = 100, kClasses = 80;

struct Files {
  std::filesystem::path ground_truth;
  std::filesystem::path results;
};

BoxXywh draw_box(RandomStream& random) {
  return {random.uniform() * 400, random.uniform() * 300, 1 + random.uniform() * 200,
          1 + random.uniform() * 150};
}

void write_truth(const std::filesystem::path& path, RandomStream& random, AnnotationSet& set) {
  std::string text = R"({"categories":[)";
  for (int i = 1; i <= kClasses; ++i)
    text += fmt::format(R"({}{{"id":{},"name":"class {}"}})", i == 1 ? "" : ",", i, i);
  text += R"(],"images":[)";
  for (int i = 1; i <= kImages; ++i) text += fmt::format(R"({}{{"id":{}}})", i == 1 ? "" : ",", i);
  text += R"(],"annotations":[)";
  for (int i = 0; i < kImages * kBoxes; ++i) {
    const auto box = draw_box(random);
    const auto category = 1 + random.below(kClasses);
    text += fmt::format(R"({}{{"id":{},"image_id":{},"category_id":{},"bbox":[{}],"iscrowd":0}})",
                        i == 0 ? "" : ",", i + 1, 1 + i / kBoxes, category, fmt::join(box, ","));
    set.annotations.push_back(
        {i + 1, ImageId(1 + i / kBoxes), CategoryId(category), box, box[2] * box[3], false});
  }
  std::ofstream(path) << text << "]}";
}

Files made_files() {
  const auto folder = std::filesystem::temp_directory_path();
  Files files{folder / "ssd_bench_truth.json", folder / "ssd_bench_results.json"};
  RandomStream random(1, RandomPurpose::test, 0, 0);
  AnnotationSet set;
  write_truth(files.ground_truth, random, set);
  std::vector<Detection> detections;
  for (int i = 0; i < kImages * kDetections; ++i) {
    // Half of them lie near a box of the image.
    const auto& near =
        set.annotations[static_cast<std::size_t>(i / kDetections * kBoxes) + random.below(kBoxes)];
    Detection detection{near.image_id, near.category_id, near.bbox_xywh, random.uniform()};
    for (auto& value : detection.bbox_xywh) value += random.uniform() * 20;
    if (random.below(2) == 0) detection.category_id = CategoryId(1 + random.below(kClasses));
    detections.push_back(detection);
  }
  write_detections(files.results, detections);
  return files;
}

const Files& files() {
  static const Files chosen = [] {
    const char* truth = std::getenv("SSD_BENCH_GROUND_TRUTH");
    const char* results = std::getenv("SSD_BENCH_RESULTS");
    return truth != nullptr && results != nullptr ? Files{truth, results} : made_files();
  }();
  return chosen;
}

// What the stages work on, made once.
struct Inputs {
  AnnotationSet set = read_annotations(files().ground_truth);
  std::vector<Detection> detections = read_detections(files().results);
  GroundTruth truth = resolve_ground_truth(set.annotations);
  std::vector<CategoryId> category_ids = evaluated_categories(set);
  std::vector<ImageId> image_ids = ids_of_images();
  EvaluationParameters parameters;
  MatchOutcomes outcomes = match();
  EvaluationResult result = accumulate(parameters, category_ids, {&outcomes, 1});

  MatchOutcomes match(int threads = 1) const {
    return match_images(parameters, {category_ids, image_ids, truth.boxes, detections}, threads);
  }

 private:
  std::vector<ImageId> ids_of_images() const {
    std::vector<ImageId> ids;
    for (const auto& image : set.images) ids.push_back(image.id);
    return ids;
  }
};

const Inputs& inputs() {
  static const Inputs made;
  return made;
}

void count_detections(benchmark::State& state) {
  state.counters["detections/s"] = benchmark::Counter(static_cast<double>(inputs().detections.size()),
                                                      benchmark::Counter::kIsIterationInvariantRate);
}

void read_truth(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(read_annotations(files().ground_truth));
}
BENCHMARK(read_truth)->Unit(benchmark::kMillisecond);

void read_results(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        read_detections(files().results, {.threads = static_cast<int>(state.range(0)), .on_progress = {}}));
  }
  count_detections(state);
}
BENCHMARK(read_results)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

void match(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(inputs().match(static_cast<int>(state.range(0))));
  count_detections(state);
}
BENCHMARK(match)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

void accumulate(benchmark::State& state) {
  const auto& all = inputs();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        accumulate(all.parameters, all.category_ids, {&all.outcomes, 1}, static_cast<int>(state.range(0))));
  }
  count_detections(state);
}
BENCHMARK(accumulate)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

void summary(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(summarize(inputs().result));
}
BENCHMARK(summary)->Unit(benchmark::kMillisecond);

// Ground truth and detections in memory to the twelve numbers.
void whole_in_memory(benchmark::State& state) {
  const auto& all = inputs();
  for (auto _ : state) {
    const auto evaluation =
        evaluate(all.parameters, all.set, all.detections, static_cast<int>(state.range(0)));
    benchmark::DoNotOptimize(summarize(evaluation.result));
  }
  count_detections(state);
}
BENCHMARK(whole_in_memory)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace ssd

BENCHMARK_MAIN();
