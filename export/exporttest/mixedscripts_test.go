package exporttest

// mixedScripts is the suite of what one client's opens and locks mean for
// another's, by the same protocol and by others. notSMB is why a script means
// something else by SMB.
var mixedScripts = []struct{ name, notSMB, text string }{
	{"an open denies opens", "", `
		a P     create f 0666
		a P     open f access=read deny=write
		b Q     open f access=write            -> share violation
		b Q     open f access=both             -> share violation
		b Q     open f access=read
		b Q     close f
		a P     close f
		b Q     open f access=write
		b Q     close f
		a P     open f access=both deny=both
		b Q     open f access=read             -> share violation
		b Q     open f access=write            -> share violation
	`},
	{"an open denies what is open", "", `
		a P     create f 0666
		a P     open f access=write
		b Q     open f access=read deny=write  -> share violation
		b Q     open f access=read deny=both   -> share violation
		b Q     open f access=read deny=read
		b Q     close f
		a P     close f
		b Q     open f access=read deny=write
	`},
	{"an open denies I/O", "", `
		a P     create f 0666
		a P     open f access=both deny=write
		a P     write f 0 data                 -> 4
		b Q     read f 0 10                    -> "data" eof
		a P     close f
		b Q     write f 0 xy                   -> 2
		a P     open f access=read deny=write
		b Q     write f 0 x                    -> share refused
		b Q     truncate f 0                   -> share refused
		b Q     chmod f 0600
		b Q     read f 0 10                    -> "xyta" eof
		a P     close f
		a P     open f access=write deny=read
		b Q     read f 0 10                    -> share refused
		b Q     write f 2 z                    -> 1
		a P     close f
		b Q     read f 0 10                    -> "xyza" eof
	`},
	{"an open changes", "an open stays as it was made", `
		a P     create f 0666
		a P     open f access=read
		b Q     open f access=both
		a P     change f access=read deny=write -> share violation
		b Q     change f access=read deny=none
		a P     change f access=read deny=write
		b Q     change f access=both deny=none  -> share violation
		a P     change f access=read deny=none
		b Q     change f access=both deny=none
	`},
	{"an open file without a name", "what is open keeps its name", `
		a nfs4  create f 0666
		a nfs4  open f access=both
		a nfs4  write f 0 data                 -> 4
		b Q     remove f
		b Q     lookup f                       -> noent
		a nfs4  read f 0 10                    -> "data" eof
		a nfs4  write f 4 more                 -> 4
		a nfs4  close f
	`},
	{"an open file with another name", "", `
		a nfs4  create f 0666
		a nfs4  open f access=both
		b Q     rename f g
		a nfs4  write f 0 data                 -> 4
		b Q     read g 0 10                    -> "data" eof
	`},
	{"an open file with another mode", "", `
		a nfs4  create f 0666
		a nfs4  open f access=write
		b Q     chmod f 0444
		a nfs4  write f 0 data                 -> 4
		a nfs4  read f 0 10                    -> "data" eof
		a nfs4  truncate f 2
		b Q     read f 0 10                    -> "da" eof
	`},
	{"locks", "locks are exact, and do not become one", `
		a P     create f 0666
		a P     open f access=both
		b Q     open f access=both
		a P     lock f write 10 10
		b Q     lock f write 0 11              -> denied
		b Q     lock f read 19 1               -> denied
		b Q     lock f read 0 0                -> denied
		b Q     test f read 15 1               -> denied
		b Q     test f write 20 10
		b Q     lock f write 0 10
		b Q     lock f write 20 0
		a P     lock f read 100 1              -> denied
		a P     unlock f 12 3
		b Q     lock f write 12 3
		b Q     lock f write 11 1              -> denied
		b Q     lock f write 15 1              -> denied
		a P     lock f write 12 1              -> denied
		b Q     unlock f 0 0
		a P     lock f write 0 0
	`},
	{"locks are advisory", "its locks bind everybody", `
		a P     create f 0666
		a P     open f access=both
		a P     lock f write 0 0
		b Q     write f 0 data                 -> 4
		b Q     read f 0 10                    -> "data" eof
	`},
	{"shared locks", "locks are exact, and one's own do not give way", `
		a P     create f 0666
		a P     open f access=both
		b Q     open f access=both
		a P     lock f read 0 10
		b Q     lock f read 5 10
		a P     lock f write 0 5
		a P     lock f write 0 10              -> denied
		b Q     lock f write 10 5
		b Q     lock f write 5 10              -> denied
		b Q     unlock f 0 0
		a P     lock f write 0 10
	`},
	{"owners of one client", "who owns a lock is the open", `
		a P     create f 0666
		a P     open f access=both
		a P     lock f write 0 10 owner=x
		a P     lock f write 5 10 owner=y      -> denied
		a P     lock f write 10 10 owner=y
		a P     unlock f 0 10 owner=x
		a P     lock f write 5 10 owner=y
	`},
	{"locks end with the open", "", `
		a P     create f 0666
		a P     open f access=both
		b Q     open f access=both
		a P     lock f write 0 10
		b Q     lock f write 0 10              -> denied
		a P     close f
		b Q     lock f write 0 10
	`},
	{"locks by an open that is not for that", "", `
		a nfs4  create f 0666
		a nfs4  open f access=read
		a nfs4  lock f write 0 10              -> openmode
		a nfs4  lock f read 0 10
		b nfs4  open f access=write
		b nfs4  lock f read 20 10              -> openmode
		b nfs4  lock f write 20 10
	`},
	{"mandatory locks", "", `
		a store create f 0666
		a store open f access=both
		a store write f 0 0123456789           -> 10
		a store mandatory f write 2 3
		b Q     read f 0 2                     -> "01"
		b Q     read f 0 3                     -> lock refused
		b Q     write f 4 x                    -> lock refused
		b Q     write f 5 x                    -> 1
		b Q     open f access=both
		b Q     lock f read 0 0                -> denied
		b Q     lock f write 5 0
		b Q     write f 4 x                    -> lock refused
		b Q     close f
		a store close f
		b Q     write f 4 x                    -> 1
		b Q     read f 0 10                    -> "0123xx6789" eof
	`},
	{"mandatory shared locks", "", `
		a store create f 0666
		a store open f access=both
		a store write f 0 0123456789           -> 10
		a store mandatory f read 2 3
		b Q     read f 0 10                    -> "0123456789" eof
		b Q     write f 4 x                    -> lock refused
	`},
	{"what one makes, others see", "", `
		a P     mkdir d 0755
		a P     create d/f 0640
		a P     write d/f 0 data               -> 4
		a P     symlink d/l f
		b Q     list d                         -> . .. f l
		b Q     stat d/f type mode uid size    -> file 0640 0 4
		b Q     stat d type mode               -> dir 0755
		b Q     read d/f 0 10                  -> "data" eof
		b Q     readlink d/l                   -> f
		b Q     write d/f 4 more               -> 4
		b Q     chmod d/f 0600
		b Q     utimes d/f 1000000000 2000000000
		a P     stat d/f mode atime mtime size -> 0600 1000000000 2000000000 8
		b Q     rename d/f g
		a P     lookup d/f                     -> noent
		a P     read g 0 10                    -> "datamore" eof
		b Q     link g d/h
		a P     same g d/h                     -> yes
		a P     stat g nlink                   -> 2
		a P     remove g
		b Q     lookup g                       -> noent
		b Q     read d/h 0 10                  -> "datamore" eof
		b Q     remove d/h
		b Q     remove d/l
		a P     list d                         -> . ..
		a P     rmdir d
		b Q     lookup d                       -> noent
	`},
	{"names of all kinds", "", `
		a P     create é 0644
		a P     create a:b?c 0644
		a P     create dot. 0644
		a P     create \xff\xfe 0644
		b Q     lookup é
		b Q     lookup a:b?c
		b Q     lookup dot.
		b Q     lookup \xff\xfe
		b Q     rename a:b?c d*e
		a P     remove \xff\xfe
		b Q     lookup \xff\xfe                -> noent
		b Q     list .                         -> . .. d*e dot. é
		a P     remove d*e
		a P     remove dot.
		b Q     list .                         -> . .. é
	`},
	{"locks of SMB", "", `
		a smb   create f 0666
		a smb   open f access=both
		a smb   write f 0 0123456789           -> 10
		a smb   lock f write 2 3
		b Q     read f 0 2                     -> "01"
		b Q     read f 0 3                     -> lock refused
		b Q     write f 4 x                    -> lock refused
		b Q     truncate f 3                   -> lock refused
		b Q     open f access=both
		b Q     test f read 4 1                -> denied
		b Q     lock f read 0 0                -> denied
		b Q     lock f write 5 5
		a smb   lock f read 9 1                -> denied
		a smb   lock f read 0 2
		b Q     read f 0 2                     -> "01"
		b Q     write f 0 x                    -> lock refused
		b Q     unlock f 5 5
		a smb   lock f read 9 1
		a smb   unlock f 2 3
		b Q     write f 4 x                    -> 1
		b Q     lock f write 2 3
		a smb   close f
		b Q     write f 0 x                    -> 1
	`},
	{"a lock of others and SMB", "", `
		a P     create f 0666
		a P     open f access=both
		a P     lock f read 10 10
		b smb   open f access=both
		b smb   lock f write 19 1              -> denied
		b smb   lock f read 19 1
		b smb   lock f write 20 1
		b smb   write f 0 x                    -> 1
		a P     close f
		b smb   lock f write 10 9
	`},
	{"an open that denies removal", "", `
		a smb   create f 0666
		a smb   open f access=read deny=delete
		b Q     remove f                       -> removal refused
		b Q     rename f g                     -> removal refused
		b Q     create h 0666
		b Q     rename h f                     -> replacement refused
		b Q     link f i
		a smb   close f
		b Q     rename h f
		b Q     remove f
		b Q     list .                         -> . .. i
	`},
	{"an open file that others remove", "what is open keeps its name", `
		a smb   create f 0666
		a smb   open f access=both
		a smb   write f 0 data                 -> 4
		b Q     remove f
		b Q     lookup f                       -> noent
		a smb   read f 0 10                    -> "data" eof
		b Q     create f 0666
		b Q     write f 0 new                  -> 3
		a smb   read f 0 10                    -> "data" eof
		a smb   close f
		b Q     read f 0 10                    -> "new" eof
	`},
	{"a file that goes when it is closed", "", `
		a smb   create f 0666
		a smb   open f access=delete
		c smb   open f access=both
		a smb   doom f
		b Q     lookup f                       -> doomed
		b Q     open f access=read             -> open refused
		a smb   close f
		c smb   write f 0 data                 -> 4
		b Q     list .                         -> . .. f
		c smb   close f
		b Q     lookup f                       -> noent
		b Q     create f 0666
		b Q     open f access=both
	`},
	{"changes are told", "", `
		a smb   mkdir d 0777
		a smb   watch . names
		b Q     create d/f 0666
		a smb   told .                         -> added d/f
		a smb   watch . names
		b Q     rename d/f d/g
		a smb   told .                         -> from d/f to d/g
		a smb   watch . data
		b Q     write d/g 0 data               -> 4
		a smb   told .                         -> modified d/g
		a smb   watch . data
		b Q     truncate d/g 0
		a smb   told .                         -> modified d/g
		a smb   watch . attributes
		b Q     chmod d/g 0600
		a smb   told .                         -> modified d/g
		a smb   watch . names
		b Q     remove d/g
		a smb   told .                         -> removed d/g
		a smb   watch . names
		b Q     rmdir d
		a smb   told .                         -> removed d
	`},
}
