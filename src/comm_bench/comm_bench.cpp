#include "comm_bench/comm_bench.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "comm/agreement.hpp"
#include "comm/gpu.hpp"
#include "comm/mpi_session.hpp"
#include "comm_bench/bench_table.hpp"
#include "core/atomic_file.hpp"
#include "core/error.hpp"
#include "report/progress.hpp"
#if SSD_WITH_CUDA
#include "comm/nccl_gradient_communicator.hpp"
#endif

namespace ssd {
namespace {

// Of a world that was not started by a launcher: the average of one value is the value.
class LoneCommunicator : public GradientCommunicator {
 public:
  double prescale() const override { return 1; }
  void start_average(void*, std::size_t, WireType) override {}
  void finish() override {}
};

constexpr int kCpu = -1;

int choose_device(DeviceChoice choice, const RankPlacement& placement) {
  const int gpus = choice == DeviceChoice::cpu ? 0 : visible_gpu_count();
  SSD_VALIDATE(choice != DeviceChoice::cuda || gpus > 0,
               "--device cuda, but no GPU is visible on {}; in a container use --nv, or take --device cpu",
               placement.host);
  return gpus == 0 ? kCpu : choose_gpu(placement, gpus);
}

std::unique_ptr<GradientCommunicator> make_communicator(const MpiComm& world, [[maybe_unused]] int gpu) {
#if SSD_WITH_CUDA
  if (gpu != kCpu) {
    NcclOptions options;
    options.device = gpu;
    return make_nccl_gradient_communicator(world, options);
  }
#endif
  if (world.handle() == nullptr) return std::make_unique<LoneCommunicator>();
  return make_mpi_gradient_communicator(world);
}

std::string backend_name(int gpu) {
#if SSD_WITH_CUDA
  if (gpu != kCpu) {
    const int nccl = nccl_version();
    return fmt::format("NCCL {}.{}.{} in GPU memory", nccl / 10000, nccl / 100 % 100, nccl % 100);
  }
#endif
  return gpu == kCpu ? fmt::format("MPI ({}) in host memory", mpi_library_version()) : "";
}

// Rows that appear on a terminal show how far it is; where they go to a file, stderr may.
bool shows_progress() {
  return ::isatty(STDOUT_FILENO) != 1 && progress_output_of_stderr() == ProgressOutput::terminal;
}

std::size_t largest_buffer(const std::vector<BenchmarkCase>& cases) {
  std::size_t bytes = 0;
  for (const auto& what : cases) bytes = std::max(bytes, what.buffer_bytes());
  return bytes;
}

void print(const MpiComm& world, const std::string& text) {
  if (!world.is_root()) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

std::vector<BenchmarkCase> benchmark_cases(const CommBenchOptions& options) {
  std::vector<BenchmarkCase> cases;
  for (const auto type : options.types) {
    for (const auto bytes : doubled_sizes(options.min_bytes, options.max_bytes)) {
      cases.push_back({{{type, bytes / wire_type_bytes(type)}}});
    }
    cases.push_back(
        {{{type, options.gradient.convolution_count}, {WireType::float32, options.gradient.batch_norm_count}},
         true});
  }
  return cases;
}

void expect_free_memory(std::size_t buffer_bytes, int buffers, std::size_t free_bytes,
                        const std::string& where) {
  const double needed = static_cast<double>(buffer_bytes) * buffers, free = static_cast<double>(free_bytes);
  SSD_VALIDATE(
      needed <= free,
      "averages of {} bytes need {:.1f} GB on {}, and {:.1f} GB are free there; take a smaller --max-bytes, "
      "or fewer ranks",
      buffer_bytes, needed * 1e-9, where, free * 1e-9);
}

namespace {

void check_memory(std::size_t buffer_bytes, const RankPlacement& placement, int gpu) {
  if (gpu == kCpu) {  // a buffer for each rank, and as much again for what MPI receives
    expect_free_memory(buffer_bytes, 2 * placement.local_size, free_host_bytes(), placement.host);
  } else {
    expect_free_memory(buffer_bytes, 1, free_gpu_bytes(gpu),
                       fmt::format("GPU {} of {}", gpu, placement.host));
  }
}

}  // namespace

int run_comm_bench(const CommBenchOptions& options, const MpiComm& world) {
  const auto cases = benchmark_cases(options);
  const auto buffer_bytes = largest_buffer(cases);
  const auto placement = find_placement(world);
  int gpu = kCpu;
  run_in_agreement(world, [&] {
    gpu = choose_device(options.device, placement);
    check_memory(buffer_bytes, placement, gpu);
    // What it is written to at the end is looked at now.
    if (world.is_root() && !options.json.empty()) validate_output_path(options.json);
  });
  agree_on_one_gpu_each(world, placement, gpu);

  std::unique_ptr<CommBuffer> buffer;
  run_in_agreement(world, [&] {
    buffer = gpu == kCpu ? make_host_buffer(buffer_bytes) : make_gpu_buffer(buffer_bytes, gpu);
  });
  const auto communicator = make_communicator(world, gpu);
  BenchSetting setting;
  setting.world_size = world.world_size();
  setting.node_count =
      static_cast<int>(world.reduce_all(std::int64_t{placement.local_rank == 0}, ReduceOperation::sum));
  setting.backend = backend_name(gpu);
  setting.gradient = fmt::format("SSD300 with {}, {} classes", options.gradient.backbone, kGradientClasses);
  setting.benchmark = options.benchmark;

  print(world, format_head(setting));
  std::vector<BenchRow> rows;
  std::optional<Progress> progress;
  if (shows_progress()) progress.emplace("averages", "sizes", cases.size());
  for (const auto& what : cases) {
    rows.push_back(
        bench_row(what, measure(world, *communicator, *buffer, what, options.benchmark), setting.world_size));
    print(world, format_row(rows.back()));
    if (progress) progress->advance();
  }
  if (progress) progress->finish();
  print(world, format_verdict(setting, rows) + '\n');
  run_in_agreement(world, [&] {
    if (world.is_root() && !options.json.empty()) {
      write_file_atomically(options.json, bench_json(setting, rows).dump(2) + '\n');
    }
  });
  return all_right(rows) ? 0 : 1;
}

}  // namespace ssd
