# The files of std/ are in the program too: base/standard.c includes a row FILE(path, text) for each,
# the text as a string of its bytes, which compilers read several times faster than numbers.
file(GLOB_RECURSE standard CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} std/*.tl)
set(rows "")
foreach(path IN LISTS standard)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${path})
    file(READ ${CMAKE_SOURCE_DIR}/${path} bytes HEX)
    string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
    string(APPEND rows "FILE(\"${path}\", \"${bytes}\")\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/standard/base/standard_files.def CONTENT "${rows}" @ONLY)
target_include_directories(tl_base PRIVATE ${CMAKE_BINARY_DIR}/standard)

# The pages of servers and of profiles likewise.
foreach(name serve/page main/profile)
    set(page ${CMAKE_SOURCE_DIR}/src/${name}.html)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
    file(READ ${page} bytes HEX)
    string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/standard/${name}.def CONTENT "\"${bytes}\"\n" @ONLY)
endforeach()
target_include_directories(tl_serve PRIVATE ${CMAKE_BINARY_DIR}/standard)
