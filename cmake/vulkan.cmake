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

# Every row of shaders/kernels.def becomes one module: SHADER(name, "file", "defines", needs). Files in
# GLSL are compiled by glslc; those in PTX stay text, which the C preprocessor expands. The modules of one
# file are packed together, in the order of their rows; device/vulkan/modules.c includes the archives.
set(shader_folder ${CMAKE_SOURCE_DIR}/shaders)
set(module_folder ${CMAKE_BINARY_DIR}/shaders)
file(MAKE_DIRECTORY ${module_folder}/nvidia)
include(cmake/numbers.cmake)
set(shader_includes -I ${shader_folder} -I ${shader_folder}/include -I ${CMAKE_SOURCE_DIR}/src -I ${module_folder})

function(ptx_module file name defines)
    set(module ${module_folder}/${name}.module)
    separate_arguments(defines UNIX_COMMAND "${defines}")
    add_custom_command(
        OUTPUT ${module}
        COMMAND ${CMAKE_C_COMPILER} -E -P -undef -x c ${shader_includes} ${defines}
                -MD -MF ${module}.d -MT ${module} -o ${module} ${shader_folder}/${file}
        DEPENDS ${shader_folder}/${file}
        DEPFILE ${module}.d
        COMMENT "Expanding ${name}"
        VERBATIM)
    set(modules_of_${file} ${modules_of_${file}} ${module} PARENT_SCOPE)
endfunction()

# The defines of a row stand in a source of their own, so that one glslc compiles several: it starts in the
# time in which it compiles a small one. Rows that differ by what they need alone have one module.
function(glsl_source file name defines)
    string(SHA1 text "${file} ${defines}")
    if(DEFINED module_of_${text})
        set(modules_of_${file} ${modules_of_${file}} ${module_of_${text}} PARENT_SCOPE)
        return()
    endif()
    string(REGEX REPLACE "-D([A-Z0-9_]+)=?([^ ]*) *" "#define \\1 \\2\n" defines "${defines}")
    set(source ${module_folder}/${name}.comp)
    file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "#version 460
#extension GL_GOOGLE_include_directive : require
@defines@#include \"@file@\"
")
    set(sources_of_${file} ${sources_of_${file}} ${source} PARENT_SCOPE)
    set(modules_of_${file} ${modules_of_${file}} ${source}.spv PARENT_SCOPE)
    set(module_of_${text} ${source}.spv PARENT_SCOPE)
endfunction()

# glslc's optimiser takes most of the time in which shaders are built, drivers have their own, and these files are
# as fast without. (So is map.comp, but drivers then take seconds for the formulas that a program needs.)
set(shaders_for_drivers matmul_parts.comp scatter.comp scan.comp sort_block.comp gather.comp index_put.comp)

# One command compiles the sources in ARGN, which are of one file. What glslc says of their dependencies begins
# with the module, without its folder; the file of it is named by the sources, since other ones have other dependencies.
function(glsl_modules file)
    list(TRANSFORM ARGN APPEND .spv OUTPUT_VARIABLE modules)
    list(TRANSFORM modules APPEND .d OUTPUT_VARIABLE depfiles)
    string(SHA1 sources "${ARGN}")
    set(depfile ${module_folder}/${sources}.d)
    string(REPLACE ";" " " depfiles "${depfiles}")
    set(optimise -O)
    if(file IN_LIST shaders_for_drivers)
        set(optimise -O0)
    endif()
    add_custom_command(
        OUTPUT ${modules}
        COMMAND ${GLSLC} --target-env=vulkan1.2 ${optimise} -Werror ${shader_includes} -MD -c ${ARGN}
        COMMAND sh -c "sed 's|^|${module_folder}/|' ${depfiles} >${depfile}"
        DEPENDS ${ARGN} ${shader_folder}/${file}
        DEPFILE ${depfile}
        WORKING_DIRECTORY ${module_folder}
        COMMENT "Compiling shaders of ${file}"
        VERBATIM)
endfunction()

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shader_folder}/kernels.def)
file(STRINGS ${shader_folder}/kernels.def lines REGEX "^SHADER")
set(rows "")
foreach(line IN LISTS lines)
    if(line MATCHES "^SHADERS_OF_([A-Z]+)\\(([A-Za-z0-9_]+), *(\"[^\"]*\"), *\"([^\"]*)\"\\)$")
        set(reals F32 F64)
        if(CMAKE_MATCH_1 STREQUAL NUMBERS)
            list(APPEND reals I64)
        endif()
        foreach(real IN LISTS reals)
            list(APPEND rows "SHADER(${CMAKE_MATCH_2}_${real}, ${CMAKE_MATCH_3}, \"-DREAL_${real} ${CMAKE_MATCH_4}\"")
        endforeach()
    else()
        list(APPEND rows "${line}")
    endif()
endforeach()
set(files "")
foreach(row IN LISTS rows)
    string(REGEX MATCH "^SHADER\\(([A-Za-z0-9_]+), *\"([^\"]*)\", *\"([^\"]*)\"" found "${row}")
    if(NOT found)
        message(FATAL_ERROR "shaders/kernels.def: this row is not understood: ${row}")
    endif()
    set(name ${CMAKE_MATCH_1})
    set(file ${CMAKE_MATCH_2})
    set(defines "${CMAKE_MATCH_3}")
    if(NOT file MATCHES "\\.ptx$")
        glsl_source(${file} ${name} "${defines}")
    elseif(TL_VULKAN_PTX)
        ptx_module(${file} ${name} "${defines}")
    else()
        continue()
    endif()
    list(APPEND files ${file})
endforeach()
list(REMOVE_DUPLICATES files)
foreach(file IN LISTS files)
    list(LENGTH sources_of_${file} count)
    foreach(first RANGE 0 ${count} 8)
        list(SUBLIST sources_of_${file} ${first} 8 sources)
        if(sources)
            glsl_modules(${file} ${sources})
        endif()
    endforeach()
endforeach()
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
