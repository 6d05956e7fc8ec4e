# Unit tests (tests/<layer>/test_*.c, cmocka programs), benchmarks and fuzzers. All link one shared library
# of everything but main, so that a program is as large as its own source.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
add_library(tl_testing SHARED ${TL_OBJECTS})
target_link_libraries(tl_testing PUBLIC ${TL_LIBRARIES})

# Each is in a runtime from its start. At -O1 gcc takes two thirds of the time for them.
add_library(tl_test_runtime OBJECT tests/support/runtime.c)

function(tl_test_program name)
    add_executable(${name} ${ARGN} $<TARGET_OBJECTS:tl_test_runtime>)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    target_link_libraries(${name} PRIVATE tl_testing PkgConfig::CMOCKA)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    set_property(DIRECTORY APPEND PROPERTY test_programs ${name})
endfunction()

foreach(layer ${TL_LAYERS})
    file(GLOB tests CONFIGURE_DEPENDS tests/${layer}/test_*.c)
    foreach(test ${tests})
        get_filename_component(name ${test} NAME_WE)
        tl_test_program(${layer}_${name} ${test})
        add_test(NAME ${layer}_${name} COMMAND ${layer}_${name})
    endforeach()
endforeach()

# Products of tiles on processors without them: loops in place of the instructions.
add_library(tl_tiles_emulated OBJECT ${TL_SOURCES_panels})
target_compile_definitions(tl_tiles_emulated PRIVATE TL_ISA=emulated TL_TILES)
target_compile_options(tl_tiles_emulated PRIVATE -fwrapv)
target_link_libraries(device_test_quantised PRIVATE tl_tiles_emulated)

# Tests of the Vulkan device's inside: tests/device/vulkan/test_*.c.
if(vulkan_built)
    file(GLOB vulkan_tests CONFIGURE_DEPENDS tests/device/vulkan/test_*.c)
    foreach(test ${vulkan_tests})
        get_filename_component(name ${test} NAME_WE)
        tl_test_program(vulkan_${name} ${test})
        target_include_directories(vulkan_${name} PRIVATE ${VULKAN_HEADERS})
    endforeach()
endif()

# Benchmarks: tests/bench/bench_*.c, built and run by `make bench` only. They alone need OpenMP, which the
# OpenBLAS that they measure runs on.
find_package(OpenMP COMPONENTS C)
if(OpenMP_C_FOUND)
    file(GLOB benches CONFIGURE_DEPENDS tests/bench/bench_*.c)
    set(bench_programs)
    foreach(bench ${benches})
        get_filename_component(name ${bench} NAME_WE)
        add_executable(${name} EXCLUDE_FROM_ALL ${bench} $<TARGET_OBJECTS:tl_test_runtime>)
        target_link_libraries(${name} PRIVATE tl_testing -Wl,--as-needed PkgConfig::OPENBLAS OpenMP::OpenMP_C)
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
        list(APPEND bench_programs ${name})
    endforeach()
    add_custom_target(bench COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/bench/run.py --build ${CMAKE_BINARY_DIR}
                      DEPENDS tl ${bench_programs} USES_TERMINAL)
endif()

# Fuzz targets: tests/fuzz/fuzz_<name>.c. Each also runs over tests/fuzz/corpus/<name>/ as a test.
file(GLOB targets CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
if(NOT PROTOBUF_C_FOUND OR NOT TL_ONNX)
    list(FILTER targets EXCLUDE REGEX "fuzz_onnx")
endif()
foreach(target ${targets})
    get_filename_component(program ${target} NAME_WE)
    string(REPLACE fuzz_ "" name ${program})
    tl_test_program(replay_${name} ${target} tests/fuzz/replay.c)
    target_include_directories(replay_${name} PRIVATE tests)
    if(TL_FUZZ)
        tl_test_program(${program} ${target})
        target_include_directories(${program} PRIVATE tests)
        target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    endif()
    if(EXISTS ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
        add_test(NAME replay_${name}
                 COMMAND replay_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
    endif()
endforeach()

# Not a test: prints tokens, with which tests/cli/test_vscode.py compares the grammar of editors.
add_executable(tokens tests/lexer/tokens.c $<TARGET_OBJECTS:tl_test_runtime>)
target_link_libraries(tokens PRIVATE tl_testing)

# Programs whose test is gone would be run all the same.
get_property(test_programs DIRECTORY PROPERTY test_programs)
file(GLOB built RELATIVE ${CMAKE_BINARY_DIR}/tests ${CMAKE_BINARY_DIR}/tests/*)
foreach(program IN LISTS built)
    if(NOT program IN_LIST test_programs)
        file(REMOVE ${CMAKE_BINARY_DIR}/tests/${program})
    endif()
endforeach()
