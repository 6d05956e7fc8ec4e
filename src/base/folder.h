// What lies in a folder.
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include <stdbool.h>

#include "base/memory.h"

// The names, without "." and "..", in the order of their bytes, whatever the locale. Those of files
// that were put aside (base/aside.h) are among them.
typedef VECTOR(char *) FolderNames;

// False: errno says why not. Is to be freed then, too.
bool folder_list(const char *path, FolderNames *out);
void folder_names_free(FolderNames *names);

// Whether what is read there is of the moment: a pipe, a device, or what the system makes up as it
// is asked for, as below /proc.
bool file_is_of_the_moment(const char *path);

#endif
