" How Vim treats tl programs: comments, indentation, and `gq` and `=` through tl fmt.
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1
setlocal commentstring=//\ %s comments=s1:/*,mb:*,ex:*/,://
setlocal expandtab shiftwidth=4 softtabstop=4
setlocal equalprg=tl\ fmt\ -
let b:undo_ftplugin = "setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< equalprg<"
