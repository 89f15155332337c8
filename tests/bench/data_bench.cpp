// The data path and its stages, for data_bench.py, which runs them in turn with other implementations.
//   bench_data COCO SHARDS
// COCO: a folder with annotations/instances_train2017.json and train2017/. SHARDS: what ssd_preprocess made
// of it. Reads lines "PASSES CASE" and answers each with "IMAGES WALL_S CPU_S", the time of PASSES over the
// images.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>

#include "coco/annotations.hpp"
#include "core/error.hpp"
#include "core/grown.hpp"
#include "core/simd.hpp"
#include "core/vector_clones.hpp"
#include "data/loader.hpp"
#include "data/sample.hpp"
#include "image/jpeg_crop.hpp"
#include "image/jpeg_transcode.hpp"
#include "support/one_sample.hpp"

namespace ssd {
namespace {

constexpr std::size_t kCropsEach = 4;
constexpr int kBatchSize = 16;
constexpr std::uint32_t kMostDraws = 1000;
constexpr std::size_t kRowValues = std::size_t{kInputSide} * 3;

struct Photo {
  std::vector<std::byte> jpeg;
  TranscodedJpeg anew;
  RgbImage pixels;
  std::vector<CropDraw> crops;  // as training draws them: many are the whole photo
  std::vector<CropDraw> parts;  // those that are not
};

// The colour photos that have boxes, each with crops as training draws them.
std::vector<Photo> load_photos(const std::filesystem::path& coco) {
  const auto set = read_annotations(coco / "annotations/instances_train2017.json");
  std::vector<Photo> photos;
  for (const auto& image : set.images) {
    std::vector<BoxLtrb> boxes;
    for (const auto& annotation : set.annotations) {
      if (annotation.image_id != image.id) continue;
      const auto [x, y, w, h] = annotation.bbox_xywh;
      boxes.push_back({static_cast<float>(x / image.width), static_cast<float>(y / image.height),
                       static_cast<float>((x + w) / image.width),
                       static_cast<float>((y + h) / image.height)});
    }
    std::ifstream file(coco / "train2017" / image.file_name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    if (boxes.empty() || read_jpeg_info(bytes).components != 3) continue;
    Photo photo{{bytes.begin(), bytes.end()}, {}, {}, {}, {}};
    const int warnings = JpegDecoder().decode(bytes, photo.pixels);
    photo.anew = JpegTranscoder().transcode(bytes, photo.pixels, warnings);
    for (std::uint32_t i = 0; photo.parts.size() < kCropsEach && i < kMostDraws; ++i) {
      RandomStream random(1, RandomPurpose::test, i, static_cast<std::uint64_t>(image.id.value()));
      const CropDraw crop = draw_crop(boxes, {}, random);
      if (photo.crops.size() < kCropsEach) photo.crops.push_back(crop);
      if (crop.option != CropOption::whole) photo.parts.push_back(crop);
    }
    if (photo.parts.size() < kCropsEach) continue;  // no crop holds its boxes
    photos.push_back(std::move(photo));
  }
  return photos;
}

// Values of a row of pixels as the network takes them, which the peers' samples end with. scale and shift: of
// each value.
SSD_VECTOR_CLONES void normalise_row(const std::uint8_t* pixels, const float* scale, const float* shift,
                                     float* __restrict out) {
  for (std::size_t i = 0; i < kRowValues; ++i) out[i] = static_cast<float>(pixels[i]) * scale[i] + shift[i];
}

void normalise(const std::uint8_t* pixels, std::vector<float>& out) {
  static constexpr std::array<float, 3> kMean{0.485F, 0.456F, 0.406F}, kDeviation{0.229F, 0.224F, 0.225F};
  std::array<float, kRowValues> scale{}, shift{};
  for (std::size_t i = 0; i < kRowValues; ++i) {
    scale[i] = 1 / (255 * kDeviation[i % 3]);
    shift[i] = -kMean[i % 3] / kDeviation[i % 3];
  }
  for (std::size_t at = 0; at < kSampleBytes; at += kRowValues)
    normalise_row(pixels + at, scale.data(), shift.data(), &out[at]);
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Bench {
 public:
  Bench(const std::filesystem::path& coco, const std::filesystem::path& shards)
      : photos_(load_photos(coco)),
        set_(ShardSet::open(shards, Split::train)),
        cache_(set_.records().size(), std::uint64_t{1} << 30),
        maker_(set_),
        caching_maker_(set_, &cache_) {
    add_image_cases();
    add_record_cases();
    add_sample_cases();
  }

  void report_photos() const {
    double area = 0, part_area = 0;
    std::size_t bytes = 0, anew_bytes = 0, wholes = 0;
    for (const Photo& photo : photos_) {
      bytes += photo.jpeg.size();
      anew_bytes += photo.anew.bytes.size();
      for (const CropDraw& crop : photo.crops) {
        area += crop.width * crop.height;
        wholes += crop.option == CropOption::whole;
      }
      for (const CropDraw& crop : photo.parts) part_area += crop.width * crop.height;
    }
    const auto draws = static_cast<double>(photos_.size() * kCropsEach);
    std::cerr << fmt::format(
        "{} photos, {} bytes, {} encoded anew; crops: {:.0f} % are the whole photo, mean area {:.2f}, of the "
        "others "
        "{:.2f}\n",
        photos_.size(), bytes, anew_bytes, 100 * static_cast<double>(wholes) / draws, area / draws,
        part_area / draws);
  }

  void answer(const std::string& name, int passes) {
    const auto found = cases_.find(name);
    if (found == cases_.end()) throw UsageError("no case " + name);
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = cpu_seconds();
    std::size_t images = 0;
    for (int pass = 0; pass < passes; ++pass) images += found->second(pass);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    const double cpu = cpu_seconds() - cpu_start;
    loader_.reset();
    std::cout << fmt::format("{} {:.6f} {:.6f}", images, wall.count(), cpu) << std::endl;
  }

 private:
  using Case = std::function<std::size_t(int pass)>;  // returns the number of images

  Case for_each_photo(std::function<void(Photo&, const CropDraw&)> work,
                      std::vector<CropDraw> Photo::*crops = &Photo::crops) {
    return [this, work, crops](int pass) {
      for (Photo& photo : photos_) work(photo, (photo.*crops)[static_cast<std::size_t>(pass) % kCropsEach]);
      return photos_.size();
    };
  }

  static PixelRect rect_of(const Photo& photo, const CropDraw& crop) {
    return pixel_rect(crop, photo.pixels.width, photo.pixels.height);
  }

  static PictureSize size_of(const Photo& photo) { return {photo.pixels.width, photo.pixels.height}; }

  void add_image_cases() {
    cases_["decode"] = for_each_photo([this](Photo& photo, const CropDraw&) {
      decoder_.decode_rect(photo.jpeg, size_of(photo), {0, 0, photo.pixels.width, photo.pixels.height},
                           buffer_);
    });
    cases_["decode anew"] = for_each_photo([this](Photo& photo, const CropDraw&) {
      decoder_.decode_rect(photo.anew.bytes, size_of(photo), {0, 0, photo.pixels.width, photo.pixels.height},
                           buffer_);
    });
    const auto skip = [this](Photo& photo, const CropDraw& crop) {
      decoder_.decode_rect(photo.jpeg, size_of(photo), rect_of(photo, crop), buffer_);
    };
    const auto cut = [this](Photo& photo, const CropDraw& crop) {
      crop_decoder_.decode(photo.anew.bytes, {photo.anew.restart_interval, photo.anew.restart_offsets},
                           size_of(photo), rect_of(photo, crop));
    };
    cases_["skip"] = for_each_photo(skip);
    cases_["skip parts"] = for_each_photo(skip, &Photo::parts);
    cases_["crop"] = for_each_photo(cut);
    cases_["crop parts"] = for_each_photo(cut, &Photo::parts);
    cases_["resize whole"] = for_each_photo([this](Photo& photo, const CropDraw&) {
      resizer_.resize(view_of(photo.pixels), kInputSide, kInputSide, out_.data());
    });
    cases_["resize crop"] = for_each_photo([this](Photo& photo, const CropDraw& crop) {
      resizer_.resize(crop_of(view_of(photo.pixels), rect_of(photo, crop)), kInputSide, kInputSide,
                      out_.data());
    });
    grown(buffer_, kSampleBytes);
    cases_["colour"] = for_each_photo([this](Photo&, const CropDraw&) {
      apply_color(color_transform({0.3, 1.2, 0.8, 1.1}), out_.data(), kSampleBytes / 3, buffer_.data());
    });
    cases_["transcode"] = for_each_photo(
        [this](Photo& photo, const CropDraw&) { transcoder_.transcode(photo.jpeg, photo.pixels, 0); });
  }

  void add_record_cases() {
    usable_ = usable_records(set_, CrowdBoxes::train_on);
    std::string path = set_.folder() / "train-00000-of-00001.h5";
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    SSD_VALIDATE(descriptor_ >= 0, "'{}' cannot be read; the bench takes a set of one shard", path);
    const auto pread_record = [this](const Record& record) {
      std::byte* bytes = grown(bytes_, record.byte_count);
      SSD_EXPECT(::pread(descriptor_, bytes, record.byte_count, static_cast<off_t>(record.byte_offset)) ==
                 record.byte_count);
      return std::span<const std::byte>(bytes, record.byte_count);
    };
    cases_["read raw"] = [this, pread_record](int) {
      for (const auto i : usable_) (void)pread_record(set_.records()[i]);
      return usable_.size();
    };
    cases_["read raw and check"] = [this, pread_record](int) {
      for (const auto i : usable_) {
        const Record& record = set_.records()[i];
        SSD_EXPECT(crc32(pread_record(record)) == record.crc32);
      }
      return usable_.size();
    };
    cases_["read record"] = [this](int) {
      for (const auto i : usable_) (void)set_.read_jpeg(set_.records()[i], bytes_);
      return usable_.size();
    };
  }

  void add_sample_cases() {
    const auto samples_of = [this](SampleMaker& maker) {
      return [this, &maker](int pass) {
        for (const auto i : usable_) {
          sample_.make(maker, i, static_cast<std::uint32_t>(pass));
          normalise(sample_.batch.images, normalised_);
        }
        return usable_.size();
      };
    };
    cases_["sample"] = samples_of(maker_);
    cases_["cached sample"] = samples_of(caching_maker_);
    for (const int threads : {1, 2}) {
      cases_[fmt::format("loader {}", threads)] = [this, threads](int) {
        if (!loader_) {
          TrainLoaderOptions options;
          options.share.batch_size = kBatchSize;
          options.pipeline.threads = threads;
          loader_ = std::make_unique<TrainLoader>(set_, options);
        }
        const std::size_t batches = (usable_.size() + kBatchSize - 1) / kBatchSize;
        for (std::size_t i = 0; i < batches; ++i) (void)loader_->next();
        return batches * kBatchSize;
      };
    }
  }

  std::vector<Photo> photos_;
  ShardSet set_;
  std::map<std::string, Case> cases_;
  std::vector<std::uint32_t> usable_;
  int descriptor_ = -1;

  JpegDecoder decoder_;
  JpegCropDecoder crop_decoder_;
  JpegTranscoder transcoder_;
  Resizer resizer_;
  DecodedCache cache_;
  SampleMaker maker_, caching_maker_;
  std::unique_ptr<TrainLoader> loader_;  // of the case at hand: no other may have its threads beside it
  test::OneSample sample_;
  std::vector<std::byte> bytes_;
  std::vector<std::uint8_t> buffer_;
  std::vector<std::uint8_t> out_ = std::vector<std::uint8_t>(kSampleBytes);
  std::vector<float> normalised_ = std::vector<float>(kSampleBytes);
};

}  // namespace
}  // namespace ssd

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bench_data COCO SHARDS, with lines 'PASSES CASE' on the input\n";
    return 2;
  }
  try {
    ssd::limit_simd_targets();
    ssd::Bench bench(argv[1], argv[2]);
    bench.report_photos();
    int passes = 0;
    for (std::string name; std::cin >> passes && std::getline(std::cin >> std::ws, name);)
      bench.answer(name, passes);
  } catch (const std::exception& error) {
    std::cerr << "bench_data: " << error.what() << '\n';
    return 1;
  }
}
