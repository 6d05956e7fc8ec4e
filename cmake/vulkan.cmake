# The Vulkan device: its headers, glslc and libzstd are needed to build it, a driver to run. TL_VULKAN:
# AUTO builds it where they are there, ON insists, OFF leaves it out.
set(TL_VULKAN AUTO CACHE STRING "Build the Vulkan device: AUTO, ON or OFF")
find_path(VULKAN_HEADERS vulkan/vulkan_core.h)
find_path(SPIRV_HEADERS spirv/unified1/spirv.h)
find_program(GLSLC glslc)
pkg_check_modules(ZSTD_LIBRARY IMPORTED_TARGET libzstd)
option(TL_VULKAN_PTX "Programs in PTX (shaders/nvidia), for devices that take them" ON)
set(vulkan_built OFF)
if(NOT TL_VULKAN STREQUAL "OFF" AND VULKAN_HEADERS AND SPIRV_HEADERS AND GLSLC AND ZSTD_LIBRARY_FOUND)
    set(vulkan_built ON)
elseif(TL_VULKAN STREQUAL "ON")
    message(FATAL_ERROR "TL_VULKAN is ON, but Vulkan's or SPIR-V's headers, glslc or libzstd are missing")
endif()

if(NOT vulkan_built)
    message(STATUS "Without the Vulkan device")
    target_sources(tl_device PRIVATE src/device/vulkan/absent.c)
    return()
endif()

# Every row of shaders/kernels.def becomes one module: SHADER(name, "file", "defines", needs). Files
# are compiled by glslc; those in PTX stay text, which the C preprocessor expands. The modules of one
# file are packed together, in the order of their rows; device/vulkan/modules.c includes the archives.
set(shader_folder ${CMAKE_SOURCE_DIR}/shaders)
set(module_folder ${CMAKE_BINARY_DIR}/shaders)
file(MAKE_DIRECTORY ${module_folder}/nvidia)
include(cmake/numbers.cmake)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shader_folder}/kernels.def)
file(STRINGS ${shader_folder}/kernels.def rows REGEX "^SHADER\\(")
set(files "")
foreach(row IN LISTS rows)
    string(REGEX MATCH "^SHADER\\(([A-Za-z0-9_]+), *\"([^\"]*)\", *\"([^\"]*)\"" found "${row}")
    if(NOT found)
        message(FATAL_ERROR "shaders/kernels.def: this row is not understood: ${row}")
    endif()
    set(name ${CMAKE_MATCH_1})
    set(file ${CMAKE_MATCH_2})
    set(module ${module_folder}/${name}.module)
    separate_arguments(defines UNIX_COMMAND "${CMAKE_MATCH_3}")
    if(file MATCHES "\\.ptx$" AND NOT TL_VULKAN_PTX)
        continue()
    elseif(file MATCHES "\\.ptx$")
        set(compiler ${CMAKE_C_COMPILER} -E -P -undef -x c)
    else()
        set(compiler ${GLSLC} --target-env=vulkan1.2 -O -Werror)
    endif()
    add_custom_command(
        OUTPUT ${module}
        COMMAND ${compiler} -I ${shader_folder} -I ${shader_folder}/include -I ${CMAKE_SOURCE_DIR}/src -I ${module_folder} ${defines}
                -MD -MF ${module}.d -MT ${module} -o ${module} ${shader_folder}/${file}
        DEPENDS ${shader_folder}/${file}
        DEPFILE ${module}.d
        COMMENT "Compiling the shader ${name}"
        VERBATIM)
    list(APPEND files ${file})
    list(APPEND modules_of_${file} ${module})
endforeach()
list(REMOVE_DUPLICATES files)
add_executable(pack_shaders cmake/pack.c src/device/vulkan/spirv/differences.c $<TARGET_OBJECTS:tl_base>)
target_include_directories(pack_shaders PRIVATE ${SPIRV_HEADERS})
target_link_libraries(pack_shaders PRIVATE PkgConfig::ZSTD_LIBRARY PkgConfig::UTF8PROC Threads::Threads m)
set(archives "")
set(archive_rows "")
foreach(file IN LISTS files)
    set(archive ${module_folder}/${file}.zst)
    add_custom_command(
        OUTPUT ${archive}
        COMMAND pack_shaders ${archive} ${modules_of_${file}}
        DEPENDS pack_shaders ${modules_of_${file}}
        COMMENT "Packing the modules of ${file}"
        VERBATIM)
    list(APPEND archives ${archive})
    string(MAKE_C_IDENTIFIER ${file} name)
    string(APPEND archive_rows "ARCHIVE(${name}, \"${file}\", \"${archive}\")\n")
endforeach()
file(CONFIGURE OUTPUT ${module_folder}/archives.def CONTENT "${archive_rows}" @ONLY)
set_source_files_properties(src/device/vulkan/modules.c PROPERTIES OBJECT_DEPENDS "${archives}")

file(GLOB_RECURSE vulkan CONFIGURE_DEPENDS src/device/vulkan/*.c)
list(REMOVE_ITEM vulkan ${CMAKE_SOURCE_DIR}/src/device/vulkan/absent.c)
target_sources(tl_device PRIVATE ${vulkan})
target_include_directories(tl_device PRIVATE ${CMAKE_BINARY_DIR} ${VULKAN_HEADERS} ${SPIRV_HEADERS})
list(APPEND TL_LIBRARIES PkgConfig::ZSTD_LIBRARY)
add_compile_definitions(TL_VULKAN_PTX=$<BOOL:${TL_VULKAN_PTX}>)
