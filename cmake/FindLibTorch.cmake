# LibTorch as imported targets: LibTorch::cpu, and LibTorch::cuda where SSD_WITH_CUDA is on.
# LIBTORCH_ROOT (variable or environment) is a folder with include/ and lib/: what jobs/setup.sh unpacks from the wheel,
# or the official libtorch zip. Without it the folder that jobs/setup.sh fills is taken.
if(NOT LIBTORCH_ROOT)
  if(DEFINED ENV{LIBTORCH_ROOT})
    set(LIBTORCH_ROOT $ENV{LIBTORCH_ROOT})
  elseif(DEFINED ENV{SSD_DEPS})
    set(LIBTORCH_ROOT $ENV{SSD_DEPS}/libtorch-2.11.0)
  else()
    set(LIBTORCH_ROOT $ENV{HOME}/.cache/ssd/libtorch-2.11.0)
  endif()
endif()
set(LIBTORCH_ROOT ${LIBTORCH_ROOT} CACHE PATH "LibTorch: a folder with include/ and lib/")

foreach(name IN ITEMS c10 torch_cpu c10_cuda torch_cuda)
  find_library(LIBTORCH_${name} ${name} PATHS ${LIBTORCH_ROOT}/lib NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
endforeach()
find_path(LIBTORCH_INCLUDE_DIR ATen/ATen.h PATHS ${LIBTORCH_ROOT}/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)

include(FindPackageHandleStandardArgs)
set(_needed LIBTORCH_INCLUDE_DIR LIBTORCH_c10 LIBTORCH_torch_cpu)
if(SSD_WITH_CUDA)
  list(APPEND _needed LIBTORCH_c10_cuda LIBTORCH_torch_cuda)
endif()
find_package_handle_standard_args(LibTorch REQUIRED_VARS ${_needed}
  REASON_FAILURE_MESSAGE "nothing of LibTorch under LIBTORCH_ROOT=${LIBTORCH_ROOT} - run jobs/setup.sh, or set LIBTORCH_ROOT")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  add_library(LibTorch::cpu INTERFACE IMPORTED)
  target_include_directories(LibTorch::cpu SYSTEM INTERFACE
    ${LIBTORCH_INCLUDE_DIR} ${LIBTORCH_INCLUDE_DIR}/torch/csrc/api/include)
  target_link_libraries(LibTorch::cpu INTERFACE ${LIBTORCH_torch_cpu} ${LIBTORCH_c10})
  target_link_options(LibTorch::cpu INTERFACE -Wl,-rpath-link,${LIBTORCH_ROOT}/lib)
  if(SSD_WITH_CUDA)
    # Nothing names a symbol of libtorch_cuda, so the linker would drop it and with it the CUDA backend.
    add_library(LibTorch::cuda INTERFACE IMPORTED)
    target_link_libraries(LibTorch::cuda INTERFACE LibTorch::cpu
      -Wl,--push-state,--no-as-needed ${LIBTORCH_torch_cuda} ${LIBTORCH_c10_cuda} -Wl,--pop-state
      CUDA::cudart)
  endif()
endif()
mark_as_advanced(LIBTORCH_INCLUDE_DIR LIBTORCH_c10 LIBTORCH_torch_cpu LIBTORCH_c10_cuda LIBTORCH_torch_cuda)
