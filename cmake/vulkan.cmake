# The Vulkan device: its headers and glslc are needed to build it, nothing to run. TL_VULKAN: AUTO
# builds it where both are there, ON insists, OFF leaves it out.
set(TL_VULKAN AUTO CACHE STRING "Build the Vulkan device: AUTO, ON or OFF")
find_path(VULKAN_HEADERS vulkan/vulkan_core.h)
find_program(GLSLC glslc)
set(vulkan_built OFF)
if(NOT TL_VULKAN STREQUAL "OFF" AND VULKAN_HEADERS AND GLSLC)
    set(vulkan_built ON)
elseif(TL_VULKAN STREQUAL "ON")
    message(FATAL_ERROR "TL_VULKAN is ON, but Vulkan's headers or glslc are missing")
endif()

if(NOT vulkan_built)
    message(STATUS "Without the Vulkan device")
    target_sources(tl_device PRIVATE src/device/vulkan/absent.c)
    return()
endif()

# Every row of shaders/kernels.def becomes one module: SHADER(name, "file", "defines", needs). Files
# are compiled by glslc; those in PTX stay text, which the C preprocessor expands.
set(shader_folder ${CMAKE_SOURCE_DIR}/shaders)
set(module_folder ${CMAKE_BINARY_DIR}/shaders)
file(MAKE_DIRECTORY ${module_folder})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shader_folder}/kernels.def)
file(STRINGS ${shader_folder}/kernels.def rows REGEX "^SHADER\\(")
set(arrays "")
set(table "")
set(module_files "")
foreach(row IN LISTS rows)
    string(REGEX MATCH "^SHADER\\(([A-Za-z0-9_]+), *\"([^\"]*)\", *\"([^\"]*)\", *(.*)\\)" found "${row}")
    if(NOT found)
        message(FATAL_ERROR "shaders/kernels.def: this row is not understood: ${row}")
    endif()
    set(name ${CMAKE_MATCH_1})
    set(file ${CMAKE_MATCH_2})
    separate_arguments(defines UNIX_COMMAND "${CMAKE_MATCH_3}")
    set(needs ${CMAKE_MATCH_4})
    list(APPEND module_files ${module_folder}/${name}.inc)
    if(file MATCHES "\\.ptx$")
        string(APPEND table "    {NULL, sizeof ${name}, \"${name}\", ${needs}, ${name}},\n")
        string(APPEND arrays "static const char ${name}[] = {\n#include \"shaders/${name}.inc\"\n};\n")
        add_custom_command(
            OUTPUT ${module_folder}/${name}.inc
            COMMAND ${CMAKE_C_COMPILER} -E -P -undef -x c -I ${shader_folder}/include ${defines} -MD -MF ${module_folder}/${name}.d
                    -MT ${module_folder}/${name}.inc -o ${module_folder}/${name}.ptx ${shader_folder}/${file}
            COMMAND ${CMAKE_COMMAND} -DFROM=${module_folder}/${name}.ptx -DTO=${module_folder}/${name}.inc
                    -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
            DEPENDS ${shader_folder}/${file} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
            DEPFILE ${module_folder}/${name}.d
            COMMENT "Expanding ${name}"
            VERBATIM)
        continue()
    endif()
    string(APPEND table "    {${name}, sizeof ${name}, \"${name}\", ${needs}, NULL},\n")
    string(APPEND arrays "static const uint32_t ${name}[] = {\n#include \"shaders/${name}.inc\"\n};\n")
    add_custom_command(
        OUTPUT ${module_folder}/${name}.inc
        COMMAND ${GLSLC} --target-env=vulkan1.2 -O -mfmt=num -Werror -I ${shader_folder}/include
                -I ${CMAKE_SOURCE_DIR}/src ${defines} -MD -MF ${module_folder}/${name}.d
                -MT ${module_folder}/${name}.inc -o ${module_folder}/${name}.inc ${shader_folder}/${file}
        DEPENDS ${shader_folder}/${file}
        DEPFILE ${module_folder}/${name}.d
        COMMENT "Compiling the shader ${name}"
        VERBATIM)
endforeach()
file(CONFIGURE OUTPUT ${module_folder}/modules.c CONTENT
"// Generated from shaders/kernels.def.
#include \"device/vulkan/core.h\"

${arrays}
const VulkanModule vulkan_modules[] = {
${table}};
" @ONLY)
set_source_files_properties(${module_folder}/modules.c PROPERTIES OBJECT_DEPENDS "${module_files}")

file(GLOB_RECURSE vulkan CONFIGURE_DEPENDS src/device/vulkan/*.c)
list(REMOVE_ITEM vulkan ${CMAKE_SOURCE_DIR}/src/device/vulkan/absent.c)
target_sources(tl_device PRIVATE ${vulkan} ${module_folder}/modules.c)
target_include_directories(tl_device PRIVATE ${CMAKE_BINARY_DIR} ${VULKAN_HEADERS})
