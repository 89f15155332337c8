// Saves state after state into a folder, without end, for the tests that kill it: saver_program FOLDER
// [MEGABYTES]. State N has N in all its elements and is called iteration_N.pt. Goes on from the folder's
// newest whole file, and prints a line "from N" at first and "saved N" after each save that succeeded.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/checkpoint_saver.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace {

ssd::Value state_of(std::int64_t number, std::size_t bytes) {
  const std::vector<float> elements(bytes / sizeof(float), static_cast<float>(number));
  const auto view = std::as_bytes(std::span(elements));
  ssd::Dict model(ssd::Dict::Kind::ordered), root;
  model.set("w", ssd::make_tensor(ssd::DType::float32, {static_cast<std::int64_t>(elements.size())},
                                  {view.begin(), view.end()}));
  root.set("iteration", number);
  root.set("model", model);
  return root;
}

// The number of the file, after a look at all its elements; 0 for none.
std::int64_t number_in(const std::filesystem::path& folder) {
  const auto file = ssd::find_whole_checkpoint(folder);
  if (!file) return 0;
  const auto root = ssd::read_checkpoint_file(*file);
  const auto number = root.at("iteration").integer();
  const auto bytes = ssd::contiguous_bytes(root.at("model").at("w").tensor());
  const auto expected = ssd::contiguous_bytes(state_of(number, bytes.size())
                                                  .get_if<ssd::Dict>()
                                                  ->find("model")
                                                  ->get_if<ssd::Dict>()
                                                  ->find("w")
                                                  ->get_if<ssd::TensorValue>()[0]);
  SSD_VALIDATE(bytes == expected, "'{}' has mixed contents", file->string());
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::filesystem::path folder = argv[1];
    const auto bytes = (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1) << 20;
    auto number = number_in(folder);
    std::printf("from %lld\n", static_cast<long long>(number));
    std::fflush(stdout);
    ssd::CheckpointSaver saver({folder, 2, 2, .05});
    while (true) {
      ++number;
      saver.start(ssd::iteration_checkpoint_name(number), [=] { return state_of(number, bytes); });
      if (!saver.wait()) continue;
      std::printf("saved %lld\n", static_cast<long long>(number));
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    ssd::log_error("{}", error.what());
    return 1;
  }
}
