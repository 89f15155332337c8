// ssd_checkpoint: shows, compares and shrinks checkpoints. See --help.
#include <cstdio>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint_tool/compare.hpp"
#include "checkpoint_tool/describe.hpp"
#include "checkpoint_tool/tool_options.hpp"
#include "comm/agreement.hpp"
#include "core/atomic_file.hpp"
#include "core/error.hpp"

namespace {

int run(const ssd::ToolOptions& options) {
  if (!options.output.empty()) ssd::validate_output_path(options.output);
  const auto root = ssd::read_checkpoint_file(options.file);
  if (!options.output.empty()) {
    ssd::write_checkpoint_file(options.output, ssd::convert_checkpoint(root, options.part, options.dtype));
    if (std::filesystem::is_regular_file(options.output)) {
      fmt::print("{}: {} bytes, of {}: {} bytes\n", options.output.string(),
                 std::filesystem::file_size(options.output), options.file.string(),
                 std::filesystem::file_size(options.file));
    }
  }
  if (!options.compared.empty()) {
    const auto comparison = ssd::compare_checkpoints(root, ssd::read_checkpoint_file(options.compared));
    std::fputs(comparison.text.c_str(), stdout);
    return comparison.are_equal ? 0 : 1;
  }
  if (options.output.empty())
    std::fputs(ssd::describe_checkpoint(root, std::filesystem::file_size(options.file)).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return ssd::run_program(argc, argv, [&](const ssd::MpiComm& world) {
    ssd::ParsedToolOptions parsed;
    ssd::run_in_agreement(world, [&] {
      if (world.world_size() != 1)
        throw ssd::UsageError("ssd_checkpoint runs in one process; start it without mpirun");
      parsed = ssd::parse_tool_options(argc, argv);
    });
    if (parsed.options) return run(*parsed.options);
    std::fputs(parsed.text.c_str(), stdout);
    return 0;
  });
}
