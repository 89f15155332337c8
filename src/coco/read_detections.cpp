// Reading of results files. The file is cut into blocks of equal size; a record belongs to the block that holds
// its '{'. One thread reads block after block. Several threads take blocks in turn, and each guesses where the
// first record of its block begins: the guess may fall into a string or a nested object. It is right where the
// records of the block before end exactly there, by induction from the first block; where it is not, the block
// is read again from the right place.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "coco/any_record.hpp"
#include "coco/detections.hpp"
#include "coco/parallel.hpp"
#include "coco/plain_record.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

constexpr std::size_t kNoLimit = std::size_t{1} << 62;
constexpr std::size_t kOverlap = 4096;  // bytes read beyond a block, for its last record; more where it is longer

class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path) : name_(path.string()) {
    descriptor_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw system_error("read", name_, errno);
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(descriptor_);
      throw Error(fmt::format("cannot read '{}': it is not a regular file", name_));
    }
    size_ = static_cast<std::size_t>(status.st_size);
  }
  ~InputFile() { ::close(descriptor_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& name() const { return name_; }
  std::size_t size() const { return size_; }

  void read(std::size_t offset, char* bytes, std::size_t count) const {
    while (count != 0) {
      const auto got = ::pread(descriptor_, bytes, count, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw system_error("read", name_, errno);
      SSD_VALIDATE(got != 0, "cannot read '{}': it became shorter while it was read", name_);
      bytes += got;
      offset += static_cast<std::size_t>(got);
      count -= static_cast<std::size_t>(got);
    }
  }

 private:
  std::string name_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
};

// A part of the file in memory, with a place in it.
class Window {
 public:
  explicit Window(const InputFile& file) : file_(file) {}

  // limit: how large the window may become.
  void open(std::size_t offset, std::size_t count, std::size_t limit) {
    limit_ = limit;
    load(offset, count);
  }

  const char* at() const { return at_; }
  const char* end() const { return bytes_.get() + count_; }
  std::size_t position() const { return offset_ + static_cast<std::size_t>(at_ - bytes_.get()); }
  void move_to(const char* at) { at_ = at; }

  // Makes more of the file visible behind the place; false where there is no more.
  bool grow() {
    if (offset_ + count_ == file_.size()) return false;
    const auto left = static_cast<std::size_t>(end() - at_);
    const auto wanted = std::max(2 * left, kOverlap);
    SSD_VALIDATE(wanted <= limit_, "'{}': no end of a record in {} bytes", file_.name(), left);
    load(position(), wanted);
    return true;
  }

  // Goes to the next character that is not white space; '\0' at the end of the file.
  char skip_space() {
    for (;;) {
      while (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t') ++at_;
      if (at_ < end() || !grow()) return *at_;
    }
  }

 private:
  void load(std::size_t offset, std::size_t count) {
    count = std::min(count, file_.size() - offset);
    if (count + kRecordPadding > capacity_) {
      capacity_ = count + kRecordPadding;
      bytes_ = std::make_unique_for_overwrite<char[]>(capacity_);
    }
    file_.read(offset, bytes_.get(), count);
    std::memset(bytes_.get() + count, 0, kRecordPadding);
    offset_ = offset;
    count_ = count;
    at_ = bytes_.get();
  }

  const InputFile& file_;
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t limit_ = kNoLimit;
  std::size_t offset_ = 0;  // of the window in the file
  std::size_t count_ = 0;
  const char* at_ = nullptr;
};

// What one thread reads with.
struct Tools {
  explicit Tools(const InputFile& file) : window(file) {}
  Window window;
  AnyRecordReader any_record;
};

// Where the records of a block begin and where the next one's would.
struct Extent {
  std::size_t begin = 0;
  std::size_t next = 0;
  bool is_last = false;  // the array ended; next is the place behind it
};

struct GuessedBlock {
  bool is_read = false;   // false: no record was found, or something is wrong
  bool is_done = false;
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

  [[noreturn]] void throw_cut_off() const {
    throw Error(fmt::format("'{}' is not valid JSON or is cut off ({} bytes, {} detections read); write it again",
                            file_.name(), file_.size(), detections_.size()));
  }

  // False where the array is empty.
  bool begin_array(Window& window) {
    window.open(0, kOverlap, kNoLimit);
    const char first = window.skip_space();
    if (first == '\0' && window.position() == file_.size()) throw_cut_off();
    SSD_VALIDATE(first == '[', "'{}' is not a COCO results file: its top is not an array of detections",
                 file_.name());
    window.move_to(window.at() + 1);
    const bool is_empty = window.skip_space() == ']';
    next_ = window.position() + (is_empty ? 1 : 0);
    return !is_empty;
  }

  void expect_nothing_more(Window& window) const {
    window.open(next_, kOverlap, kNoLimit);
    window.skip_space();
    SSD_VALIDATE(window.position() == file_.size(),
                 "'{}' is not valid JSON: something follows its end; write it again", file_.name());
  }

  // Reads the records from the window's place on that begin before `limit`. index: of the first.
  Extent read_records(Tools& tools, std::size_t limit, std::size_t index, std::vector<Detection>& detections) const {
    auto& window = tools.window;
    Extent extent{window.position(), 0, false};
    const auto first = detections.size();
    while (window.position() < limit) {
      Detection detection;
      const char* behind = read_plain_record(window.at(), window.end(), detection);
      if (behind == nullptr) {
        behind = end_of_value(window.at(), window.end());
        if (behind == nullptr) {
          if (!window.grow()) throw_cut_off();
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
      if (between != ',') throw_cut_off();
      window.move_to(window.at() + 1);
      window.skip_space();
    }
    extent.next = window.position();
    if (extent.next == file_.size()) throw_cut_off();
    return extent;
  }

  void read_here(Tools& tools, std::size_t limit) {
    tools.window.open(next_, limit - next_ + kOverlap, kNoLimit);
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
    if (!has_ended_) throw_cut_off();
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

  // Looks at the file from `begin` on; the first record is at `least`, or one is looked for where that is behind.
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
  static bool find_record(Window& window, std::size_t least) {
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
    if (has_ended_ || next_ >= limit) {
      guess = {};
      guess.is_done = true;
      return;
    }
    if (guess.is_read && guess.extent.begin == next_) {
      detections_.insert(detections_.end(), guess.detections.begin(), guess.detections.end());
      go_on(guess.extent, guess.detections.size());
    } else {
      read_here(tools, limit);
    }
    guess = {};
    guess.is_done = true;
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
