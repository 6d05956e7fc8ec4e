# The Python package (python/): cffi writes the C of its one extension module, which uses libtl. Built with the
# Python of the system, whose packages it is installed among, where that has cffi and its headers.
set(TL_PYTHON AUTO CACHE STRING "Build the Python package: AUTO, ON or OFF")
set(python_built FALSE)
if(NOT TL_PYTHON STREQUAL "OFF" AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize")
    find_program(TL_PYTHON_PROGRAM python3 PATHS /usr/bin NO_DEFAULT_PATH)
    if(TL_PYTHON_PROGRAM)
        execute_process(COMMAND ${TL_PYTHON_PROGRAM} -c "import cffi, sysconfig; print(sysconfig.get_path('include'))"
                        OUTPUT_VARIABLE python_headers OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    if(python_headers AND EXISTS ${python_headers}/Python.h)
        set(python_built TRUE)
    elseif(TL_PYTHON STREQUAL "ON")
        message(FATAL_ERROR "the Python package needs python3-cffi and python3-dev")
    endif()
endif()

if(python_built)
    set(python_module ${CMAKE_BINARY_DIR}/python-module/_tl.c)
    add_custom_command(OUTPUT ${python_module}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/python-module
        COMMAND ${TL_PYTHON_PROGRAM} ${CMAKE_SOURCE_DIR}/python/build.py ${CMAKE_SOURCE_DIR}/include/tl.h
                ${python_module} >/dev/null
        DEPENDS python/build.py include/tl.h)
    file(GLOB python_sources CONFIGURE_DEPENDS python/tl/*.py python/tl/*.pyi python/tl/py.typed)
    add_library(tl_python MODULE ${python_module})
    target_include_directories(tl_python SYSTEM PRIVATE ${python_headers})
    target_compile_options(tl_python PRIVATE -w) # what cffi writes is not ours to warn of
    target_link_libraries(tl_python PRIVATE tl_shared)
    set_target_properties(tl_python PROPERTIES PREFIX "" OUTPUT_NAME _tl SUFFIX .abi3.so
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/tl BUILD_RPATH "\$ORIGIN" INSTALL_RPATH "\$ORIGIN")
    add_custom_command(TARGET tl_python POST_BUILD
        COMMAND ${CMAKE_COMMAND} -E copy ${python_sources} ${CMAKE_BINARY_DIR}/python/tl)
    # Sources that change without the module are copied as well.
    set_property(TARGET tl_python APPEND PROPERTY LINK_DEPENDS ${python_sources})
    add_custom_target(wheel
        COMMAND ${TL_PYTHON_PROGRAM} ${CMAKE_SOURCE_DIR}/python/wheel.py ${CMAKE_BINARY_DIR} ${PROJECT_VERSION}
        DEPENDS tl_python VERBATIM)
    install(TARGETS tl_python LIBRARY DESTINATION lib/python3/dist-packages/tl COMPONENT python)
    install(FILES ${python_sources} DESTINATION lib/python3/dist-packages/tl COMPONENT python)
endif()
