" Vim takes *.tl for another language, so that `setfiletype` would come too late.
autocmd BufNewFile,BufRead *.tl set filetype=tl
