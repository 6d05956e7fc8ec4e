# Writes the bytes of the file FROM as numbers that a C array is made of, and a 0, to the file TO.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "${bytes}0\n")
