// tl version.
#include <stdio.h>

#include "main/command.h"

int command_version(const Command *command, int count, char **arguments) {
    if (count > 0) return word_refuse(command, arguments[0]);
    printf("tl %s\nbuilt with %s %s\n", TL_VERSION,
#ifdef __clang__
           "clang",
#else
           "gcc",
#endif
           __VERSION__);
    return EXIT_SUCCESS_STATUS;
}
