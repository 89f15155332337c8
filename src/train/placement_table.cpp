#include "train/placement_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "comm/gather_texts.hpp"
#include "core/log.hpp"

namespace ssd {

// How a row travels to rank 0.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankPlacement, local_rank, local_size, cores, allowed_cores, host, cpus,
                                   node)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlacementRow, rank, place, device, compute_threads, loader_threads)

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostSingleRows = 16;

// "cuda" and "0" of "cuda:0"; "cpu" and "" of "cpu".
std::pair<std::string, std::string> split_device(const std::string& device) {
  const auto colon = device.find(':');
  return {device.substr(0, colon), colon == device.npos ? "" : device.substr(colon + 1)};
}

// Ranks that one line stands for.
using Group = std::vector<const PlacementRow*>;

bool are_alike(const PlacementRow& a, const PlacementRow& b) {
  return a.place.node == b.place.node && a.place.host == b.place.host &&
         a.place.cpus.size() == b.place.cpus.size() && a.place.allowed_cores == b.place.allowed_cores &&
         split_device(a.device).first == split_device(b.device).first &&
         a.compute_threads == b.compute_threads && a.loader_threads == b.loader_threads;
}

std::vector<Group> groups_of(std::span<const PlacementRow> rows) {
  std::vector<Group> groups;
  for (const auto& row : rows) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return rows.size() > kMostSingleRows && are_alike(*group.front(), row);
    });
    if (found == groups.end()) {
      groups.push_back({&row});
    } else {
      found->push_back(&row);
    }
  }
  return groups;
}

constexpr std::size_t kColumns = 8;
using Line = std::array<std::string, kColumns>;

const Line kHead = {"rank", "host",  "local rank",      "device",
                    "CPUs", "cores", "compute threads", "loader threads"};
constexpr std::array<bool, kColumns> kIsText = {false, true, false, true, true, false, false, false};

Line line_of(const Group& group) {
  std::vector<int> ranks, local_ranks, gpus, cpus;
  bool have_cpus_of_their_own = false;
  for (const auto* row : group) {
    ranks.push_back(row->rank);
    local_ranks.push_back(row->place.local_rank);
    const auto [kind, index] = split_device(row->device);
    if (!index.empty()) gpus.push_back(std::stoi(index));
    cpus.insert(cpus.end(), row->place.cpus.begin(), row->place.cpus.end());
    have_cpus_of_their_own = have_cpus_of_their_own || row->place.cpus != group.front()->place.cpus;
  }
  const auto& first = *group.front();
  auto device = split_device(first.device).first;
  if (!gpus.empty()) device += ":" + format_ranges(gpus);
  auto cpu_text = format_ranges(cpus);
  if (have_cpus_of_their_own) cpu_text += fmt::format(" ({} each)", first.place.cpus.size());
  return {format_ranges(ranks),
          first.place.host,
          format_ranges(local_ranks),
          device,
          cpu_text,
          std::to_string(first.place.allowed_cores),
          std::to_string(first.compute_threads),
          std::to_string(first.loader_threads)};
}

}  // namespace

std::vector<PlacementRow> gather_placement(const MpiComm& world, const PlacementRow& own) {
  const auto text = nlohmann::json(own).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::vector<PlacementRow> rows;
  for (const auto& row : gather_texts(world, text)) {
    rows.push_back(nlohmann::json::parse(row).get<PlacementRow>());
  }
  return rows;
}

void log_placement(std::span<const PlacementRow> rows) {
  if (rows.empty()) return;
  log_info("{}", format_placement(rows));
  const auto warning = overload_warning(rows);
  if (!warning.empty()) log_warning("{}", warning);
}

std::string format_placement(std::span<const PlacementRow> rows) {
  std::vector<Line> lines{kHead};
  for (const auto& group : groups_of(rows)) lines.push_back(line_of(group));
  std::array<std::size_t, kColumns> widths{};
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    if (!text.empty()) text += '\n';
    for (std::size_t i = 0; i < kColumns; ++i) {
      if (i != 0) text += "  ";
      text +=
          kIsText[i] ? fmt::format("{:<{}}", line[i], widths[i]) : fmt::format("{:>{}}", line[i], widths[i]);
    }
  }
  return text;
}

std::string overload_warning(std::span<const PlacementRow> rows) {
  const PlacementRow* worst = nullptr;
  int most_ranks = 0;
  const auto is_worse = [&](int ranks, const RankPlacement& place) {
    if (ranks <= place.allowed_cores) return false;
    return worst == nullptr || ranks * worst->place.allowed_cores > most_ranks * place.allowed_cores;
  };
  for (const auto& row : rows) {
    const auto& cpus = row.place.cpus;
    const auto ranks = std::count_if(rows.begin(), rows.end(), [&](const PlacementRow& other) {
      const auto& others = other.place.cpus;
      return other.place.node == row.place.node &&
             std::includes(cpus.begin(), cpus.end(), others.begin(), others.end());
    });
    if (!is_worse(static_cast<int>(ranks), row.place)) continue;
    worst = &row;
    most_ranks = static_cast<int>(ranks);
  }
  if (worst == nullptr) return {};
  const int cores = worst->place.allowed_cores;
  return fmt::format(
      "{} ranks share {} core{} of {} (CPUs {}) and wait for one another; start fewer there, or, where "
      "mpirun bound them to "
      "these, let them use the others: --bind-to none, or --map-by core --bind-to core",
      most_ranks, cores, cores == 1 ? "" : "s", worst->place.host, format_ranges(worst->place.cpus));
}

Json placement_json(std::span<const PlacementRow> rows) {
  auto table = Json::array();
  for (const auto& row : rows) {
    table.push_back({{"rank", row.rank},
                     {"host", row.place.host},
                     {"local_rank", row.place.local_rank},
                     {"device", row.device},
                     {"cpus", format_ranges(row.place.cpus)},
                     {"cores", row.place.allowed_cores},
                     {"compute_threads", row.compute_threads},
                     {"loader_threads", row.loader_threads}});
  }
  return table;
}

}  // namespace ssd
