# Every package the project uses, found once. jobs/setup.sh installs them on Debian.
find_package(MPI REQUIRED COMPONENTS C)
# The C++ bindings that MPI 3 removed would be pulled in by mpi.h.
target_compile_definitions(MPI::MPI_C INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(pugixml REQUIRED)
find_package(Boost REQUIRED COMPONENTS program_options)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(simdjson REQUIRED)
find_package(hwy REQUIRED)
find_path(STB_INCLUDE_DIR stb_image.h PATH_SUFFIXES stb REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp libwebpdemux)
pkg_check_modules(CAIRO REQUIRED IMPORTED_TARGET cairo)

if(NOT TARGET HDF5::HDF5)
  add_library(ssd_hdf5 INTERFACE)
  target_include_directories(ssd_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
  target_link_libraries(ssd_hdf5 INTERFACE ${HDF5_C_LIBRARIES})
  add_library(Ssd::hdf5 ALIAS ssd_hdf5)
else()
  add_library(Ssd::hdf5 ALIAS HDF5::HDF5)
endif()

# What files with vector loops link (src/core/simd.hpp). The least x86-64 processor is one of level v2 (SSE4.2: all since
# 2009). Vectors of a length that is not known when compiling (SVE) cannot hold rows of blocks: NEON is used there, whose
# 128 bits are those of Grace's SVE2.
add_library(ssd_simd INTERFACE)
target_link_libraries(ssd_simd INTERFACE hwy::hwy)
target_compile_definitions(ssd_simd INTERFACE
  "HWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)" HWY_DISABLE_PCLMUL_AES=1)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(ssd_simd INTERFACE -march=x86-64-v2)
endif()
add_library(Ssd::simd ALIAS ssd_simd)

# CUDA: the toolkit and NCCL, both or none. There is no kernel of our own, so no CUDA compiler is needed.
set(SSD_WITH_CUDA OFF)
if(NOT SSD_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit 13.0 QUIET)
  if(CUDAToolkit_FOUND)
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
  endif()
  if(CUDAToolkit_FOUND AND NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
    set(SSD_WITH_CUDA ON)
    add_library(Ssd::nccl UNKNOWN IMPORTED)
    set_target_properties(Ssd::nccl PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY})
    target_include_directories(Ssd::nccl SYSTEM INTERFACE ${NCCL_INCLUDE_DIR})
  elseif(SSD_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SSD_CUDA=ON, but the CUDA toolkit 13.0 or NCCL is not found "
      "(toolkit: ${CUDAToolkit_FOUND}, NCCL: ${NCCL_LIBRARY}); set CUDAToolkit_ROOT, or SSD_CUDA=OFF")
  endif()
endif()
message(STATUS "CUDA build: ${SSD_WITH_CUDA}")

find_package(LibTorch REQUIRED)
