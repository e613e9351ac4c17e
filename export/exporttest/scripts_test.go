package exporttest

// scripts is the suite.
var scripts = []struct{ name, text string }{
	{"files", `
		ann   create f 0640
		ann   stat f type mode uid gid size nlink   -> file 0640 1000 100 0 1
		ann   write f 0 hello                       -> 5
		ann   read f 0 100                          -> "hello" eof
		ann   read f 1 3                            -> "ell"
		ann   read f 5 10                           -> "" eof
		ann   read f 1000 10                        -> "" eof
		ann   write f 3 p!                          -> 2
		ann   write f 7 end                         -> 3
		ann   read f 0 100                          -> "help!\x00\x00end" eof
		ann   stat f size                           -> 10
		ann   lookup g                              -> noent
		ann   read . 0 10                           -> isdir
		ann   write . 0 x                           -> isdir
	`},
	{"size", `
		ann   create f 0600
		ann   write f 0 0123456789                  -> 10
		ann   truncate f 4
		ann   read f 0 100                          -> "0123" eof
		ann   truncate f 8
		ann   read f 0 100                          -> "0123\x00\x00\x00\x00" eof
		ann   truncate f 1099511627776
		ann   stat f size                           -> 1099511627776
		ann   read f 1099511627770 10               -> "\x00\x00\x00\x00\x00\x00" eof
		ann   truncate f 0
		ann   read f 0 10                           -> "" eof
		ann   mkdir d 0755
		ann   truncate d 0                          -> isdir
	`},
	{"create again", `
		ann   create f 0644
		ann   write f 0 data                        -> 4
		ann   create f 0600
		ann   stat f mode size                      -> 0644 4
		ann   create f 0600 guarded                 -> exist
		ann   mkdir f 0755                          -> exist
		ann   mkdir d 0755
		ann   create d 0644                         -> exist
		ann   symlink l f
		ann   create l 0644                         -> exist
	`},
	{"create and truncate", `
		ann   create f 0644
		ann   write f 0 data                        -> 4
		ann   create f 0644 size=0
		ann   stat f size                           -> 0
	`},
	{"exclusive create", `
		ann   create f 0600 exclusive=7
		ann   create f 0600 exclusive=7
		ann   create f 0600 exclusive=8             -> exist
		ann   chmod f 0444
		ann   utimes f 1 2
		ann   create f 0600 exclusive=7             -> exist
		ann   stat f mode                           -> 0444
	`},
	{"directories", `
		ann   mkdir d 0750
		ann   stat d type mode nlink                -> dir 0750 2
		ann   mkdir d/e 0700
		ann   stat d nlink                          -> 3
		ann   create d/f 0644
		ann   list d                                -> . .. e f
		ann   rmdir d                               -> notempty
		ann   rmdir d/f                             -> notdir
		ann   remove d/e                            -> isdir
		ann   rmdir d/e
		ann   stat d nlink                          -> 2
		ann   remove d/f
		ann   rmdir ./d
		ann   lookup d                              -> noent
		ann   rmdir ./d                             -> noent
		ann   remove d                              -> noent
		ann   create f 0644
		ann   create f/x 0644                       -> notdir
		ann   lookup f/x                            -> notdir
		ann   list f                                -> notdir
	`},
	{"dot and dot-dot", `
		ann   mkdir d 0755
		ann   mkdir d/e 0755
		ann   same d/e/.. d                         -> yes
		ann   same d/. d                            -> yes
		ann   same d/.. .                           -> yes
		ann   same .. .                             -> yes
		ann   mkdir d/. 0755                        -> exist
		ann   create d/.. 0644                      -> exist
		ann   rmdir d/e/.                           -> inval
	`},
	{"names", `
		ann   create n*255 0644
		ann   create n*256 0644         -> nametoolong
		ann   lookup n*256              -> nametoolong
		ann   mkdir n*256 0755          -> nametoolong
		ann   create é 0644
		ann   create \xff\xfe 0644
		ann   create F 0644
		ann   lookup f                              -> noent
		ann   remove \xff\xfe
		ann   list .                                -> . .. F n*255 é
	`},
	{"hard links", `
		ann   create f 0644
		ann   link f g
		ann   same f g                              -> yes
		ann   stat f nlink                          -> 2
		ann   write g 0 both                        -> 4
		ann   read f 0 10                           -> "both" eof
		ann   link f g                              -> exist
		ann   remove f
		ann   stat g nlink size                     -> 1 4
		ann   mkdir d 0755
		ann   link d e                              -> perm
		ann   link missing e                        -> noent
		ann   symlink l g
		ann   link l m
		ann   readlink m                            -> g
		ann   link g g/x                            -> notdir
	`},
	{"symbolic links", `
		ann   symlink l some/where/../else
		ann   readlink l                            -> some/where/../else
		ann   stat l type size                      -> symlink 18
		ann   symlink l x                           -> exist
		ann   create f 0644
		ann   readlink f                            -> inval
		ann   mkdir d 0755
		ann   symlink m d
		ann   lookup m/x                            -> notdir
		ann   create m/x 0644                       -> notdir
		ann   remove m
		ann   lookup d
		ann   symlink n n*4095
		ann   readlink n                            -> n*4095
		ann   symlink o n*4096          -> nametoolong
	`},
	{"special files", `
		root  mknod p fifo 0600
		root  stat p type mode                      -> fifo 0600
		root  mknod s sock 0600
		root  stat s type                           -> sock
		root  mknod b blk 0600
		root  stat b type                           -> blk
		root  remove p
		root  remove s
		root  remove b
		root  mknod c chr 0600
		root  stat c type                           -> chr
		ann   mknod x chr 0600                      -> perm
		ann   mknod x fifo 0600
		ann   write x 0 x                           -> inval
		ann   read x 0 1                            -> inval
	`},
	{"rename", `
		ann   create f 0644
		ann   write f 0 f                           -> 1
		ann   rename f g
		ann   lookup f                              -> noent
		ann   read g 0 9                            -> "f" eof
		ann   create h 0644
		ann   rename g h
		ann   read h 0 9                            -> "f" eof
		ann   list .                                -> . .. h
		ann   rename h h
		ann   rename missing x                      -> noent
		ann   mkdir d 0755
		ann   rename h d/h
		ann   rename d/h d                          -> isdir
		ann   mkdir e 0755
		ann   rename e d/h                          -> notdir
		ann   rename e d                            -> notempty
		ann   rename d e
		ann   list ./.                              -> . .. e
		ann   mkdir e/sub 0755
		ann   rename e e/sub/x                      -> inval
		ann   rename e/sub x
		ann   stat e nlink                          -> 2
		ann   same x/.. .                           -> yes
		ann   rename . y                            -> inval
		ann   rename x n*256            -> nametoolong
	`},
	{"rename of hard links", `
		ann   create f 0644
		ann   link f g
		ann   rename f g
		ann   list .                                -> . .. f g
		ann   stat f nlink                          -> 2
	`},
	{"handles", `
		ann   create f 0644
		ann   keep h f
		ann   mkdir d 0755
		ann   keep d d
		ann   rename f d/g
		ann   write @h 0 x                          -> 1
		ann   read d/g 0 9                          -> "x" eof
		ann   rename d e
		ann   lookup @d/g
		ann   remove @d/g
		ann   read @h 0 9                           -> stale
		ann   stat @h size                          -> stale
		ann   chmod @h 0600                         -> stale
		ann   create f 0644
		ann   stat @h size                          -> stale
		ann   rmdir e
		ann   create @d/x 0644                      -> stale
		ann   list @d                               -> stale
	`},
	{"a name replaced", `
		ann   create f 0644
		ann   keep h f
		ann   create g 0644
		ann   rename g f
		ann   stat @h size                          -> stale
		ann   lookup f
	`},
	{"permissions of files", `
		ann   create f 0640
		ann   write f 0 data                        -> 4
		bob   read f 0 9                            -> "data" eof
		bob   write f 0 x                           -> acces
		eve   read f 0 9                            -> acces
		eve   write f 0 x                           -> acces
		root  read f 0 9                            -> "data" eof
		root  write f 0 root                        -> 4
		ann   chmod f 0000
		ann   read f 0 9                            -> "root" eof
		ann   write f 0 mine                        -> 4
		bob   read f 0 9                            -> acces
		ann   chmod f 0604
		bob   read f 0 9                            -> acces
		eve   read ./f 0 9                          -> "mine" eof
		eve   truncate f 0                          -> acces
	`},
	{"permissions of directories", `
		ann   mkdir d 0750
		ann   create d/f 0666
		bob   lookup d/f
		bob   list d                                -> . .. f
		bob   create d/g 0644                       -> acces
		bob   remove d/f                            -> acces
		bob   rename d/f d/g                        -> acces
		eve   lookup d/f                            -> acces
		eve   list d                                -> acces
		ann   chmod d 0711
		eve   read d/f 0 9                          -> "" eof
		eve   lookup d/missing                      -> noent
		eve   list d                                -> acces
		ann   chmod d 0744
		eve   list d                                -> . .. f
		eve   lookup d/f                            -> acces
		ann   chmod d 0733
		eve   create d/e 0644
		eve   remove d/f
	`},
	{"sticky", `
		root  mkdir t 1777
		ann   create t/a 0666
		bob   remove t/a                            -> perm
		bob   rename t/a t/b                        -> perm
		bob   create t/b 0666
		bob   rename t/b t/a                        -> perm
		ann   rename t/a t/c
		ann   remove t/c
		root  remove t/b
	`},
	{"setgid directory", `
		root  mkdir d 0777
		root  chown d 0:50
		root  chmod d 2777
		ann   create d/f 0644
		ann   stat d/f gid                          -> 50
		ann   mkdir d/e 0755
		ann   stat d/e gid mode                     -> 50 2755
	`},
	{"access", `
		ann   create f 0640
		ann   access f                              -> rw-
		bob   access f                              -> r--
		eve   access f                              -> ---
		root  access f                              -> rw-
		ann   chmod f 0751
		ann   access f                              -> rwx
		bob   access f                              -> r-x
		eve   access f                              -> --x
		root  access f                              -> rwx
		ann   mkdir d 0710
		ann   access d                              -> rwx
		bob   access d                              -> --x
		eve   access d                              -> ---
	`},
	{"owner and mode", `
		ann   create f 0644
		bob   chmod f 0777                          -> perm
		bob   chown f 1001:100                      -> perm
		ann   chown f 1001:100                      -> perm
		ann   chown f 1000:50                       -> perm
		bob   create g 0644
		bob   chown g 1001:50
		bob   stat g gid                            -> 50
		root  chown f 7:8
		root  stat f uid gid                        -> 7 8
		ann   chmod f 0600                          -> perm
		root  chmod f 0600
		root  stat f mode                           -> 0600
	`},
	{"set-id bits", `
		root  create f 0755
		root  chmod f 6755
		root  stat f mode                           -> 6755
		root  chown f 1000:100
		root  stat f mode                           -> 0755
		ann   chmod f 6777
		bob   write f 0 x                           -> 1
		ann   stat f mode                           -> 0777
	`},
	{"times", `
		ann   create f 0644
		ann   utimes f 1000000001 2000000002
		ann   stat f atime mtime                    -> 1000000001 2000000002
		ann   utimes f 0 4294967295999999999
		ann   stat f mtime atime                    -> 4294967295999999999 0
		bob   utimes f 1 1                          -> perm
		bob   touch f                               -> acces
		ann   chmod f 0666
		bob   touch ./f
		bob   utimes ./f 1 1                        -> perm
		ann   changes f write f 0 x                 -> mtime ctime
		ann   changes f chmod f 0600                -> ctime
		ann   changes f link f g                    -> ctime
		ann   changes f read f 0 1                  -> nothing
		ann   changes . create h 0600               -> mtime ctime
		ann   changes . write h 0 x                 -> nothing
		ann   changes . rename h i                  -> mtime ctime
		ann   changes i rename i h                  -> ctime
		ann   changes . remove h                    -> mtime ctime
	`},
	{"guard", `
		ann   create f 0644
		ann   guarded f 0600                        -> ok
		ann   misguarded f 0644                     -> not_sync
		ann   stat f mode                           -> 0600
	`},
	{"large directory", `
		ann   mkdir d 0755
		ann   fill d 2000
		ann   count d                               -> 2002
		ann   lookup d/n1999
		ann   drain d
		ann   list d                                -> . ..
		ann   rmdir d
	`},
	{"large file", `
		ann   create f 0600
		ann   pattern f 0 5000000
		ann   matches f 0 5000000                   -> yes
		ann   pattern f 65536 1048576
		ann   matches f 65536 1048576               -> yes
		ann   stat f size                           -> 5000000
	`},
}
