// tl devices.
#include <stdio.h>

#include "device/device.h"
#include "main/command.h"

int command_devices(const Command *command, int count, char **arguments) {
    if (count > 0) return word_refuse(command, arguments[0]);
    SCOPED_TEXT(text);
    device_list(&text);
    fputs(text_get(&text), stdout);
    return EXIT_SUCCESS_STATUS;
}
