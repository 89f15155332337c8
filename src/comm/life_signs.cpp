#include "comm/life_signs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace ssd {

LifeSign make_life_sign(const char* phase, double seconds_without_change, bool waits_for_ranks) {
  LifeSign sign;
  const std::string_view text(phase);
  std::copy_n(text.begin(), std::min(text.size(), sign.phase.size() - 1), sign.phase.begin());
  sign.seconds_without_change = seconds_without_change;
  sign.waits_for_ranks = waits_for_ranks;
  return sign;
}

std::optional<std::string> find_silent_rank(std::span<const WatchedRank> ranks, double deadline_s) {
  for (const auto& [rank, host, sign, silent_s] : ranks) {
    if (!sign.is_last && silent_s > deadline_s) {
      return fmt::format("rank {} on {} has given no sign of life for {:.0f} s; when last heard of it was {}",
                         rank, host, silent_s, sign.phase.data());
    }
  }
  return std::nullopt;
}

std::optional<std::string> find_stuck_rank(std::span<const WatchedRank> ranks, double deadline_s) {
  if (auto silent = find_silent_rank(ranks, deadline_s)) return silent;
  const auto seconds_at_work = [](const WatchedRank& one) {
    return one.sign.is_last || one.sign.waits_for_ranks ? 0 : one.sign.seconds_without_change;
  };
  const auto busiest = std::max_element(ranks.begin(), ranks.end(), [&](const auto& a, const auto& b) {
    return seconds_at_work(a) < seconds_at_work(b);
  });
  if (busiest != ranks.end() && seconds_at_work(*busiest) > deadline_s) {
    return fmt::format("rank {} on {} has been {} for {:.0f} s", busiest->rank, busiest->host,
                       busiest->sign.phase.data(), seconds_at_work(*busiest));
  }
  const auto waits_too_long = [&](const WatchedRank& one) {
    return one.sign.is_last || (one.sign.waits_for_ranks && one.sign.seconds_without_change > deadline_s);
  };
  const auto first_waiting =
      std::find_if(ranks.begin(), ranks.end(), [](const auto& one) { return !one.sign.is_last; });
  if (first_waiting == ranks.end() || !std::all_of(ranks.begin(), ranks.end(), waits_too_long))
    return std::nullopt;
  const auto elsewhere = std::find_if(ranks.begin(), ranks.end(), [&](const auto& one) {
    return one.sign.is_last || one.sign.phase != first_waiting->sign.phase;
  });
  const auto place = [](const WatchedRank& one) {
    return one.sign.is_last
               ? fmt::format("rank {} on {} has ended", one.rank, one.host)
               : fmt::format("rank {} on {} while {}", one.rank, one.host, one.sign.phase.data());
  };
  return fmt::format("all ranks have been waiting for each other for {:.0f} s: {}{}",
                     first_waiting->sign.seconds_without_change, place(*first_waiting),
                     elsewhere != ranks.end() ? ", " + place(*elsewhere) : " and all others likewise");
}

}  // namespace ssd
