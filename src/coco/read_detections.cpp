// Reading of results files. The file is cut into blocks of equal size; a record belongs to the block that
// holds its '{'. One thread reads block after block. Several threads take blocks in turn, and each guesses
// where the first record of its block begins: the guess may fall into a string or a nested object. It is
// right where the records of the block before end exactly there, by induction from the first block; where it
// is not, the block is read again from the right place.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "coco/any_record.hpp"
#include "coco/detections.hpp"
#include "coco/file_window.hpp"
#include "coco/parallel.hpp"
#include "coco/plain_record.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

constexpr std::size_t kOverlap =
    4096;  // bytes read beyond a block, for its last record; more where it is longer

// What one thread reads with.
static_assert(FileWindow::kPadding >= kRecordPadding);
struct Tools {
  explicit Tools(const InputFile& file) : window(file) {}
  FileWindow window;
  AnyRecordReader any_record;
};

// Where the records of a block begin and where the next one's would.
struct Extent {
  std::size_t begin = 0;
  std::size_t next = 0;
  bool is_last = false;  // the array ended; next is the place behind it
};

struct GuessedBlock {
  bool is_done = false;  // a thread has tried it
  bool is_read = false;  // false: no record was found, or something is wrong
  Extent extent;
  std::vector<Detection> detections;
};

class ResultsReader {
 public:
  ResultsReader(const std::filesystem::path& path, const ReadOptions& options)
      : file_(path), options_(options), block_bytes_(std::max<std::size_t>(options.block_bytes, 1)) {}

  std::vector<Detection> read() {
    Tools tools(file_);
    if (begin_array(tools.window)) {
      if (options_.threads > 1) {
        read_in_parallel();
      } else {
        while (!has_ended_) read_here(tools, end_of_block(next_));
      }
    }
    expect_nothing_more(tools.window);
    return std::move(detections_);
  }

 private:
  std::size_t end_of_block(std::size_t position) const {
    return (position / block_bytes_ + 1) * block_bytes_;
  }

  [[noreturn]] void throw_cut_off(std::size_t detections_read) const {
    throw Error(
        fmt::format("'{}' is not valid JSON or is cut off ({} bytes, {} detections read); write it again",
                    file_.name(), file_.size(), detections_read));
  }

  // False where the array is empty.
  bool begin_array(FileWindow& window) {
    window.open(0, kOverlap, FileWindow::kNoLimit);
    const char first = window.skip_space();
    if (first == '\0' && window.position() == file_.size()) throw_cut_off(0);
    SSD_VALIDATE(first == '[', "'{}' is not a COCO results file: its top is not an array of detections{}",
                 file_.name(), first == '{' ? ", but an object; an annotation file, perhaps?" : "");
    window.move_to(window.at() + 1);
    const bool is_empty = window.skip_space() == ']';
    next_ = window.position() + (is_empty ? 1 : 0);
    return !is_empty;
  }

  void expect_nothing_more(FileWindow& window) const {
    window.open(next_, kOverlap, FileWindow::kNoLimit);
    window.skip_space();
    SSD_VALIDATE(window.position() == file_.size(),
                 "'{}' is not valid JSON: something follows its end; write it again", file_.name());
  }

  // Reads the records from the window's place on that begin before `limit`. index: of the first.
  Extent read_records(Tools& tools, std::size_t limit, std::size_t index,
                      std::vector<Detection>& detections) const {
    auto& window = tools.window;
    Extent extent{window.position(), 0, false};
    const auto first = detections.size();
    while (window.position() < limit) {
      Detection detection;
      const char* behind = read_plain_record(window.at(), window.end(), detection);
      if (behind == nullptr) {
        behind = end_of_value(window.at(), window.end());
        if (behind == nullptr) {
          if (!window.grow()) throw_cut_off(index + detections.size() - first);
          continue;
        }
        const std::string_view text(window.at(), static_cast<std::size_t>(behind - window.at()));
        detection = tools.any_record.read(text, file_.name(), index + detections.size() - first);
      }
      detections.push_back(detection);
      window.move_to(behind);
      const char between = window.skip_space();
      if (between == ']') {
        extent.is_last = true;
        extent.next = window.position() + 1;
        return extent;
      }
      if (between != ',') throw_cut_off(index + detections.size() - first);
      window.move_to(window.at() + 1);
      window.skip_space();
    }
    extent.next = window.position();
    if (extent.next == file_.size()) throw_cut_off(index + detections.size() - first);
    return extent;
  }

  void read_here(Tools& tools, std::size_t limit) {
    tools.window.open(next_, limit - next_ + kOverlap, FileWindow::kNoLimit);
    const auto count = detections_.size();
    try {
      const auto extent = read_records(tools, limit, count, detections_);
      go_on(extent, detections_.size() - count);
    } catch (...) {
      detections_.resize(count);  // another thread may come to the same block and must say the same
      throw;
    }
  }

  void go_on(const Extent& extent, std::size_t new_detections) {
    next_ = extent.next;
    has_ended_ = extent.is_last;
    if (options_.on_progress) options_.on_progress(new_detections);
    // As many as the whole file will hold, if it goes on like this.
    if (detections_.capacity() < 2 * new_detections && !has_ended_) {
      const auto per_byte = static_cast<double>(detections_.size()) / static_cast<double>(next_);
      detections_.reserve(static_cast<std::size_t>(1.1 * per_byte * static_cast<double>(file_.size())) + 16);
    }
  }

  void read_in_parallel() {
    const auto start = next_;
    const auto first_block = start / block_bytes_;
    guesses_.resize(file_.size() / block_bytes_ + 1 - first_block);
    parallel_for(guesses_.size(), options_.threads, [&](std::size_t i) {
      auto tools = take_tools();
      auto guess = i == 0 ? read_block(*tools, start, start, end_of_block(start))
                          : read_guessed(*tools, (first_block + i) * block_bytes_);
      const std::lock_guard lock(mutex_);
      guesses_[i] = std::move(guess);
      for (; taken_ < guesses_.size() && guesses_[taken_].is_done; ++taken_)
        take_block(guesses_[taken_], *tools, (first_block + taken_ + 1) * block_bytes_);
      idle_.push_back(std::move(tools));
    });
    if (!has_ended_) throw_cut_off(detections_.size());
  }

  std::unique_ptr<Tools> take_tools() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Tools>(file_);
    auto tools = std::move(idle_.back());
    idle_.pop_back();
    return tools;
  }

  GuessedBlock read_guessed(Tools& tools, std::size_t block) const {
    constexpr std::size_t kBack = 64;  // to see what is before the first '{'
    return read_block(tools, block - std::min(block, kBack), block, block + block_bytes_);
  }

  // Looks at the file from `begin` on; the first record is at `least`, or one is looked for where that is
  // behind.
  GuessedBlock read_block(Tools& tools, std::size_t begin, std::size_t least, std::size_t limit) const {
    GuessedBlock block;
    block.is_done = true;
    try {
      if (least >= file_.size()) return block;
      tools.window.open(begin, limit - begin + kOverlap, 4 * (block_bytes_ + kOverlap));
      if (least != begin && !find_record(tools.window, least)) return block;
      block.detections.reserve(block_bytes_ / 100);
      block.extent = read_records(tools, limit, 0, block.detections);
      block.is_read = true;
    } catch (const Error&) {  // read again in its turn, from the right place
    }
    return block;
  }

  // The first "}, {" whose '{' is at `least` or behind.
  static bool find_record(FileWindow& window, std::size_t least) {
    const char* const first = window.at();
    const auto skip_back = [first](const char* at) {
      while (at > first && (at[-1] == ' ' || at[-1] == '\n' || at[-1] == '\r' || at[-1] == '\t')) --at;
      return at;
    };
    const char* at = first + (least - window.position());
    while (at < window.end()) {
      const auto* brace =
          static_cast<const char*>(std::memchr(at, '{', static_cast<std::size_t>(window.end() - at)));
      if (brace == nullptr) return false;
      const char* comma = skip_back(brace);
      if (comma > first && comma[-1] == ',') {
        const char* before = skip_back(comma - 1);
        if (before > first && before[-1] == '}') {
          window.move_to(brace);
          return true;
        }
      }
      at = brace + 1;
    }
    return false;
  }

  // In the order of the blocks.
  void take_block(GuessedBlock& guess, Tools& tools, std::size_t limit) {
    if (!has_ended_ && next_ < limit) {
      if (guess.is_read && guess.extent.begin == next_) {
        detections_.insert(detections_.end(), guess.detections.begin(), guess.detections.end());
        go_on(guess.extent, guess.detections.size());
      } else {
        read_here(tools, limit);
      }
    }
    guess.detections = std::vector<Detection>();  // = {} would keep the memory
  }

  InputFile file_;
  const ReadOptions& options_;
  std::size_t block_bytes_;
  std::vector<Detection> detections_;
  std::size_t next_ = 0;  // where the next record begins, or behind the array
  bool has_ended_ = false;

  std::mutex mutex_;  // of all that follows and, while threads run, of what is above
  std::vector<std::unique_ptr<Tools>> idle_;
  std::vector<GuessedBlock> guesses_;
  std::size_t taken_ = 0;  // blocks whose records are in detections_
};

}  // namespace

std::vector<Detection> read_detections(const std::filesystem::path& path, const ReadOptions& options) {
  return ResultsReader(path, options).read();
}

}  // namespace ssd
