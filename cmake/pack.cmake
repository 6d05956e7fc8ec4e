# Packs MODULES, which are of one source and much alike, into the archive TO: a line of their lengths,
# filled up to a multiple of 4 bytes, then their bytes, all in one frame of zstd.
set(lengths "")
foreach(module IN LISTS MODULES)
    file(SIZE ${module} bytes)
    string(APPEND lengths "${bytes} ")
endforeach()
string(LENGTH "${lengths}" used)
math(EXPR missing "3 - ${used} % 4")
string(REPEAT " " ${missing} padding)
file(WRITE ${TO}.lengths "${lengths}${padding}\n")
# By way of a file, since a frame says how long its contents are where that is known before.
execute_process(COMMAND ${CMAKE_COMMAND} -E cat ${TO}.lengths ${MODULES} OUTPUT_FILE ${TO}.contents
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${ZSTD} -q -f -19 --long=24 ${TO}.contents -o ${TO} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE ${TO}.lengths ${TO}.contents)
