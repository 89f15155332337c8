#include "comm/nccl_double.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <cstring>
#include <map>
#include <thread>

#include "comm/half.hpp"

namespace ssd::test {
namespace {

// From the call of an average to an error in it: later than the polling of the call itself.
constexpr auto kErrorDelay = std::chrono::milliseconds(300);

struct Communicator {
  bool is_stuck = false;
  bool is_finalized = false;
  bool is_aborted = false;
  int polls_left = 0;
  int averages = 0;
  CallResult error;
  std::array<std::int64_t, 2> id{};  // and its negative: equal on all ranks if each is its own maximum
  MPI_Request start = MPI_REQUEST_NULL;
};

// An average on its way: the ranks compare what each was asked for, then each gathers all values.
struct Average {
  void* data;
  std::size_t count;
  WireType type;
  enum { waiting, comparing, gathering } phase = waiting;
  std::array<std::int64_t, 4> asked{};
  std::vector<std::byte> gathered{};
  MPI_Request request = MPI_REQUEST_NULL;
};

template <class T>
void average_values(const Average& average, std::size_t ranks) {
  const auto* all = reinterpret_cast<const T*>(average.gathered.data());
  const auto factor = static_cast<T>(1.0 / static_cast<double>(ranks));
  for (std::size_t i = 0; i < average.count; ++i) {
    T sum = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) sum += all[rank * average.count + i] * factor;
    static_cast<T*>(average.data)[i] = sum;
  }
}

// As NCCL does: each value times 1/ranks, all three rounded to the type, then the sum.
template <class ToFloat, class FromFloat>
void average_values(const Average& average, std::size_t ranks, ToFloat to_float, FromFloat from_float) {
  const auto* all = reinterpret_cast<const std::uint16_t*>(average.gathered.data());
  const float factor = to_float(from_float(static_cast<float>(1.0 / static_cast<double>(ranks))));
  for (std::size_t i = 0; i < average.count; ++i) {
    float sum = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const float term = to_float(from_float(to_float(all[rank * average.count + i]) * factor));
      sum = to_float(from_float(sum + term));
    }
    static_cast<std::uint16_t*>(average.data)[i] = from_float(sum);
  }
}

void compute_average(const Average& average, std::size_t ranks) {
  switch (average.type) {
    case WireType::float16:
      return average_values(average, ranks, half_to_float, float_to_half);
    case WireType::bfloat16:
      return average_values(average, ranks, bfloat16_to_float, float_to_bfloat16);
    case WireType::float32:
      return average_values<float>(average, ranks);
    case WireType::float64:
      return average_values<double>(average, ranks);
  }
}

CallResult failure(const char* text) {
  return {CallCode::failed, text};
}

[[noreturn]] void hang() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

bool has_ended(MPI_Request& request) {
  int flag = 0;
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  return flag != 0;
}

}  // namespace

class NcclDouble::State {
 public:
  State(const MpiComm& world, const NcclInjection& injection)
      : world_(world.duplicate()), injection_(injection) {}

  CallResult get_unique_id(NcclUniqueId* id) {
    if (is_here(NcclFault::no_unique_id)) return failure("unhandled system error");
    const std::int64_t number = std::chrono::steady_clock::now().time_since_epoch().count();
    std::memcpy(id->data(), &number, sizeof number);
    return {};
  }

  CallResult init(void** handle, int world_size, const NcclUniqueId& id, int rank) {
    const std::lock_guard lock(mutex_);
    if (world_size != world_.world_size() || rank != world_.rank()) {
      device_.break_rule("NCCL's ranks are not those of MPI");
    }
    if (is_here(NcclFault::start_error)) return failure("unhandled system error");
    auto comm = std::make_shared<Communicator>();
    std::memcpy(comm->id.data(), id.data(), sizeof comm->id[0]);
    comm->id[1] = -comm->id[0];
    comm->is_stuck = is_here(NcclFault::start_never_ends);
    if (!comm->is_stuck) start_maximum(comm->id, comm->start);
    comm->polls_left = injection_.polls_in_progress;
    *handle = comm.get();
    communicators_[*handle] = std::move(comm);
    return {CallCode::in_progress, {}};
  }

  CallResult poll(void* handle) {
    const Call call(*this);
    const std::lock_guard lock(mutex_);
    const auto comm = find(handle);
    if (comm == nullptr) return failure("invalid argument");
    auto state = state_of(*comm);
    if (comm->polls_left > 0) --comm->polls_left;
    return state;
  }

  CallResult all_reduce(void* data, std::size_t count, WireType type, void* handle, void* stream) {
    const Call call(*this);
    std::unique_lock lock(mutex_);
    const auto comm = find_ready(handle);
    if (comm == nullptr) return failure("invalid argument");
    const auto fault = comm->averages++ == injection_.average ? injection_.fault : NcclFault::none;
    if (fault == NcclFault::average_error && is_here(fault)) return failure("invalid usage");
    if (fault == NcclFault::average_call_hangs && is_here(fault)) {
      lock.unlock();
      hang();
    }
    SimulatedDevice::Task task;
    if (fault == NcclFault::average_never_ends && is_here(fault)) {
      task = [this, comm] { return is_aborted(*comm); };
    } else if (fault == NcclFault::error_during_average) {
      const auto error = is_here(fault) ? failure("unhandled system error")
                                        : CallResult{CallCode::failed_remotely, "remote process exited"};
      const auto begin = std::chrono::steady_clock::now();
      task = [this, comm, error, begin] {
        if (std::chrono::steady_clock::now() > begin + kErrorDelay) fail(*comm, error);
        return is_aborted(*comm);
      };
    } else {
      auto average = std::make_shared<Average>(Average{.data = data, .count = count, .type = type});
      task = [this, comm, average] { return proceed(*comm, *average); };
    }
    const auto result = device_.launch(stream, data, SimulatedDevice::Use::write, std::move(task));
    return result.code == CallCode::success ? begin(*comm) : result;
  }

  CallResult finalize(void* handle) {
    const Call call(*this);
    const std::lock_guard lock(mutex_);
    const auto comm = find_ready(handle);
    if (comm == nullptr) return failure("invalid argument");
    if (comm->is_finalized) device_.break_rule("a communicator was finalized twice");
    comm->is_finalized = true;
    comm->is_stuck = is_here(NcclFault::finish_never_ends);
    return begin(*comm);
  }

  CallResult destroy(void* handle) {
    const Call call(*this);
    const std::lock_guard lock(mutex_);
    const auto comm = find_ready(handle);
    if (comm == nullptr) return failure("invalid argument");
    if (!comm->is_finalized) device_.break_rule("a communicator was destroyed before it was finalized");
    communicators_.erase(handle);
    return {};
  }

  CallResult abort(void* handle) {
    {
      const std::lock_guard lock(mutex_);
      const auto comm = find(handle);
      if (comm == nullptr) return failure("invalid argument");
      comm->is_aborted = true;
      communicators_.erase(handle);
    }
    if (injection_.does_abort_hang) hang();
    return {};
  }

  CallResult destroy_stream(void* stream) {
    {
      const std::lock_guard lock(mutex_);
      if (!communicators_.empty()) device_.break_rule("a stream was destroyed before the communicator");
    }
    return device_.destroy_stream(stream);
  }

  std::size_t communicator_count() const {
    const std::lock_guard lock(mutex_);
    return communicators_.size();
  }

  SimulatedDevice& device() { return device_; }

 private:
  // Two calls at a time on a communicator are against NCCL's rules.
  class Call {
   public:
    explicit Call(State& state) : state_(state) {
      if (state_.calls_++ != 0) state_.device_.break_rule("two threads called into a communicator at a time");
      std::this_thread::sleep_for(state_.injection_.call_time);
    }
    ~Call() { --state_.calls_; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    State& state_;
  };

  bool is_here(NcclFault fault) const {
    return injection_.fault == fault && injection_.rank == world_.rank();
  }

  std::shared_ptr<Communicator> find(void* handle) {
    const auto at = communicators_.find(handle);
    if (at != communicators_.end()) return at->second;
    device_.break_rule("a communicator was used that has been destroyed or aborted");
    return nullptr;
  }

  // For every call but polling and abort.
  std::shared_ptr<Communicator> find_ready(void* handle) {
    auto comm = find(handle);
    if (comm != nullptr && state_of(*comm).code == CallCode::in_progress) {
      device_.break_rule("a communicator was used before its last call had been carried out");
    }
    return comm;
  }

  CallResult begin(Communicator& comm) {
    comm.polls_left = injection_.polls_in_progress;
    return state_of(comm);
  }

  CallResult state_of(Communicator& comm) {
    if (comm.error.code != CallCode::success) return comm.error;
    if (comm.is_stuck || !has_ended(comm.start) || comm.polls_left > 0) return {CallCode::in_progress, {}};
    if (comm.id[0] != -comm.id[1]) return failure("the ranks have different unique ids");
    return {};
  }

  bool is_aborted(const Communicator& comm) {
    const std::lock_guard lock(mutex_);
    return comm.is_aborted;
  }

  void fail(Communicator& comm, const CallResult& error) {
    const std::lock_guard lock(mutex_);
    comm.error = error;
  }

  bool proceed(Communicator& comm, Average& average) {
    const std::lock_guard lock(mutex_);
    if (comm.is_aborted) return true;
    if (average.phase == Average::waiting) {
      const auto count = static_cast<std::int64_t>(average.count),
                 type = static_cast<std::int64_t>(average.type);
      average.asked = {count, -count, type, -type};
      start_maximum(average.asked, average.request);
      average.phase = Average::comparing;
    }
    if (!has_ended(average.request)) return false;
    if (average.phase == Average::comparing) {
      if (average.asked[0] != -average.asked[1] || average.asked[2] != -average.asked[3]) {
        device_.break_rule("the ranks average buffers of different counts or types");
        return true;
      }
      start_gather(average);
      average.phase = Average::gathering;
      return false;
    }
    compute_average(average, static_cast<std::size_t>(world_.world_size()));
    return true;
  }

  template <std::size_t n>
  void start_maximum(std::array<std::int64_t, n>& values, MPI_Request& request) {
    MPI_Iallreduce(MPI_IN_PLACE, values.data(), int{n}, MPI_INT64_T, MPI_MAX, mpi_comm(), &request);
  }

  void start_gather(Average& average) {
    const auto bytes = average.count * wire_type_bytes(average.type);
    average.gathered.resize(bytes * static_cast<std::size_t>(world_.world_size()));
    MPI_Iallgather(average.data, static_cast<int>(bytes), MPI_BYTE, average.gathered.data(),
                   static_cast<int>(bytes), MPI_BYTE, mpi_comm(), &average.request);
  }

  MPI_Comm mpi_comm() const { return static_cast<MPI_Comm>(world_.handle()); }

  const MpiComm world_;
  const NcclInjection injection_;
  mutable std::mutex mutex_;  // taken before the device's
  std::map<void*, std::shared_ptr<Communicator>> communicators_;
  std::atomic<int> calls_ = 0;
  SimulatedDevice device_;  // last: its thread uses the rest
};

NcclDouble::NcclDouble(const MpiComm& world, const NcclInjection& injection)
    : state_(std::make_shared<State>(world, injection)) {}

SimulatedDevice& NcclDouble::device() {
  return state_->device();
}

std::vector<std::string> NcclDouble::broken_rules() const {
  return state_->device().broken_rules();
}

std::vector<std::string> NcclDouble::leaks() const {
  std::vector<std::string> leaks;
  const auto add = [&](std::size_t count, const char* what) {
    if (count != 0) leaks.push_back(fmt::format("{} {}", count, what));
  };
  add(state_->device().stream_count(), "streams");
  add(state_->device().event_count(), "events");
  add(state_->communicator_count(), "communicators");
  return leaks;
}

NcclFunctions NcclDouble::functions() {
  return {
      .set_device = [](int) { return CallResult{}; },
      .stream_create = [state = state_](void** stream) { return state->device().create_stream(stream); },
      .stream_destroy = [state = state_](void* stream) { return state->destroy_stream(stream); },
      .event_create = [state = state_](void** event) { return state->device().create_event(event); },
      .event_destroy = [state = state_](void* event) { return state->device().destroy_event(event); },
      .event_record = [state = state_](void* event,
                                       void* stream) { return state->device().record(event, stream); },
      .event_query = [state = state_](void* event) { return state->device().query(event); },
      .stream_wait_event = [state = state_](void* stream,
                                            void* event) { return state->device().wait(stream, event); },
      .get_unique_id = [state = state_](NcclUniqueId* id) { return state->get_unique_id(id); },
      .comm_init = [state = state_](void** comm, int world_size, const NcclUniqueId& id,
                                    int rank) { return state->init(comm, world_size, id, rank); },
      .comm_state = [state = state_](void* comm) { return state->poll(comm); },
      .all_reduce_average = [state = state_](
                                void* data, std::size_t count, WireType type, void* comm,
                                void* stream) { return state->all_reduce(data, count, type, comm, stream); },
      .comm_finalize = [state = state_](void* comm) { return state->finalize(comm); },
      .comm_destroy = [state = state_](void* comm) { return state->destroy(comm); },
      .comm_abort = [state = state_](void* comm) { return state->abort(comm); },
  };
}

}  // namespace ssd::test
