# How a library, a program and a test of this project are declared.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Release: -O2, and contracts stay (they do not use NDEBUG).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers and ccache agree on this sloppiness only; with the base directory clones in other folders and
  # other build folders share what is cached.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

# The installed tree is found from where it is put; LibTorch where it was at build time, or in lib/ beside it.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${LIBTORCH_ROOT}/lib")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

add_library(ssd_options INTERFACE)
target_compile_features(ssd_options INTERFACE cxx_std_20)
# No contraction to fused multiply-add anywhere: exact results (IoU, matching, evaluation) depend on it.
target_compile_options(ssd_options INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor
  -ffp-contract=off $<$<BOOL:${SSD_WERROR}>:-Werror>)
if(SSD_SANITIZE)
  target_compile_options(ssd_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  target_link_options(ssd_options INTERFACE -fsanitize=address,undefined)
endif()
if(SSD_FUZZ)
  target_compile_options(ssd_options INTERFACE -fsanitize=fuzzer-no-link)  # what is tested guides the fuzzer
endif()
target_include_directories(ssd_options INTERFACE ${PROJECT_SOURCE_DIR}/src)

# The precompiled torch/torch.h, made once and shared by every target that is declared with TORCH.
function(_ssd_use_torch target)
  target_link_libraries(${target} PUBLIC LibTorch::cpu)
  if(NOT TARGET ssd_torch_pch)
    file(WRITE ${PROJECT_BINARY_DIR}/torch_pch.cpp "")
    add_library(ssd_torch_pch STATIC ${PROJECT_BINARY_DIR}/torch_pch.cpp)
    target_link_libraries(ssd_torch_pch PUBLIC ssd_options LibTorch::cpu)
    target_precompile_headers(ssd_torch_pch PRIVATE <torch/torch.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM ssd_torch_pch)
endfunction()

# Whether one of these targets was declared with TORCH.
function(_ssd_links_torch result)
  set(${result} OFF PARENT_SCOPE)
  foreach(target IN LISTS ARGN)
    get_target_property(linked ${target} LINK_LIBRARIES)
    if(LibTorch::cpu IN_LIST linked)
      set(${result} ON PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# ssd_add_library(<room> [TORCH] SOURCES ... DEPENDS ...): target ssd_<room>, alias Ssd::<room>.
function(ssd_add_library room)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(ssd_${room} STATIC ${arg_SOURCES})
  add_library(Ssd::${room} ALIAS ssd_${room})
  target_link_libraries(ssd_${room} PUBLIC ssd_options ${arg_DEPENDS})
  if(arg_TORCH)
    _ssd_use_torch(ssd_${room})
  endif()
endfunction()

# ssd_add_program(<name> [TORCH] SOURCES ... DEPENDS ...): an installed program in build/<preset>/bin. Its target is
# program_<name>, since a room may have the program's name; all of them are the target programs.
add_custom_target(programs)
# Programs that link no LibTorch, and the tests that link none and run alone; those tests have this label, too.
add_custom_target(torch_free)
function(ssd_add_program name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;DEPENDS" ${ARGN})
  set(target program_${name})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ssd_options ${arg_DEPENDS})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  if(arg_TORCH)
    _ssd_use_torch(${target})
  endif()
  add_dependencies(programs ${target})
  if(NOT arg_TORCH)
    add_dependencies(torch_free ${target})
  endif()
  install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# ssd_add_test(<x_test.cpp> [TORCH] [RANKS 1 2 4] [TIMEOUT s] [LABELS ...] [SOURCES more.cpp] [PROGRAMS target ...]
#              DEPENDS ...)
# One executable for the file. Without RANKS it runs alone and without MPI; with RANKS it runs under mpirun once for
# each number of ranks. PROGRAMS: those that it starts, built before it. Test data: the macro SSD_TEST_DATA is the path of
# tests/data. An executable that runs no test fails; one whose tests were all skipped shows as skipped (exit code 77).
function(ssd_add_test file)
  cmake_parse_arguments(arg "TORCH" "TIMEOUT" "RANKS;LABELS;SOURCES;PROGRAMS;DEPENDS" ${ARGN})
  get_filename_component(name ${file} NAME_WE)
  get_filename_component(room ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(target ${room}_${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${target} ${file} ${arg_SOURCES})
  target_compile_definitions(${target} PRIVATE SSD_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
    SSD_BIN_DIR="${PROJECT_BINARY_DIR}/bin" SSD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(arg_TORCH)
    _ssd_use_torch(${target})
  endif()
  if(arg_PROGRAMS)
    add_dependencies(${target} ${arg_PROGRAMS})
  endif()
  if(arg_RANKS)
    target_link_libraries(${target} PRIVATE ssd_test_main_mpi ${arg_DEPENDS})
    foreach(ranks IN LISTS arg_RANKS)
      add_test(NAME ${room}/${name}.np${ranks}
        COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${target}>)
      _ssd_test_properties(${room}/${name}.np${ranks} ${arg_TIMEOUT} "mpi;${arg_LABELS}" ${ranks})
    endforeach()
  else()
    target_link_libraries(${target} PRIVATE ssd_test_main ${arg_DEPENDS})
    add_test(NAME ${room}/${name} COMMAND ${target})
    _ssd_links_torch(links_torch ${target} ${arg_DEPENDS})
    if(NOT links_torch AND NOT arg_PROGRAMS)
      add_dependencies(torch_free ${target})
      list(APPEND arg_LABELS torch_free)
    endif()
    _ssd_test_properties(${room}/${name} ${arg_TIMEOUT} "${arg_LABELS}" 1)
  endif()
endfunction()

# ssd_add_fuzzer(<x_fuzzer.cpp> [SOURCES more.cpp] DEPENDS ...): target x_fuzzer, built by name alone.
function(ssd_add_fuzzer file)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  if(NOT SSD_FUZZ)
    return()
  endif()
  get_filename_component(target ${file} NAME_WE)
  add_executable(${target} EXCLUDE_FROM_ALL ${file} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${target} PRIVATE ssd_options ${arg_DEPENDS})
endfunction()

function(_ssd_test_properties test timeout labels ranks)
  if(ranks GREATER 2)
    set(ranks 2)
  endif()
  if(CMAKE_CROSSCOMPILING)  # an emulator
    math(EXPR timeout "${timeout} * 10")
  endif()
  # Root and more ranks than cores are refused by Open MPI unless told otherwise; idle ranks must not spin.
  set_tests_properties(${test} PROPERTIES TIMEOUT ${timeout} LABELS "${labels}" PROCESSORS ${ranks}
    SKIP_RETURN_CODE 77 ENVIRONMENT "${SSD_TEST_ENVIRONMENT}")
endfunction()

set(SSD_TEST_ENVIRONMENT
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
  OMP_NUM_THREADS=1  # two threads that spin at barriers beside another test cost minutes
  ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0)
