package exporttest

// mixedScripts is the suite of what one client's opens and locks mean for
// another's, by the same protocol and by others.
var mixedScripts = []struct{ name, text string }{
	{"an open denies opens", `
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
	{"an open denies what is open", `
		a P     create f 0666
		a P     open f access=write
		b Q     open f access=read deny=write  -> share violation
		b Q     open f access=read deny=both   -> share violation
		b Q     open f access=read deny=read
		b Q     close f
		a P     close f
		b Q     open f access=read deny=write
	`},
	{"an open denies I/O", `
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
	{"an open changes", `
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
	{"an open file without a name", `
		a nfs4  create f 0666
		a nfs4  open f access=both
		a nfs4  write f 0 data                 -> 4
		b Q     remove f
		b Q     lookup f                       -> noent
		a nfs4  read f 0 10                    -> "data" eof
		a nfs4  write f 4 more                 -> 4
		a nfs4  close f
	`},
	{"an open file with another name", `
		a nfs4  create f 0666
		a nfs4  open f access=both
		b Q     rename f g
		a nfs4  write f 0 data                 -> 4
		b Q     read g 0 10                    -> "data" eof
	`},
	{"an open file with another mode", `
		a nfs4  create f 0666
		a nfs4  open f access=write
		b Q     chmod f 0444
		a nfs4  write f 0 data                 -> 4
		a nfs4  read f 0 10                    -> "data" eof
		a nfs4  truncate f 2
		b Q     read f 0 10                    -> "da" eof
	`},
	{"locks", `
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
	{"locks are advisory", `
		a P     create f 0666
		a P     open f access=both
		a P     lock f write 0 0
		b Q     write f 0 data                 -> 4
		b Q     read f 0 10                    -> "data" eof
	`},
	{"shared locks", `
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
	{"owners of one client", `
		a P     create f 0666
		a P     open f access=both
		a P     lock f write 0 10 owner=x
		a P     lock f write 5 10 owner=y      -> denied
		a P     lock f write 10 10 owner=y
		a P     unlock f 0 10 owner=x
		a P     lock f write 5 10 owner=y
	`},
	{"locks end with the open", `
		a P     create f 0666
		a P     open f access=both
		b Q     open f access=both
		a P     lock f write 0 10
		b Q     lock f write 0 10              -> denied
		a P     close f
		b Q     lock f write 0 10
	`},
	{"locks by an open that is not for that", `
		a nfs4  create f 0666
		a nfs4  open f access=read
		a nfs4  lock f write 0 10              -> openmode
		a nfs4  lock f read 0 10
		b nfs4  open f access=write
		b nfs4  lock f read 20 10              -> openmode
		b nfs4  lock f write 20 10
	`},
	{"mandatory locks", `
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
	{"mandatory shared locks", `
		a store create f 0666
		a store open f access=both
		a store write f 0 0123456789           -> 10
		a store mandatory f read 2 3
		b Q     read f 0 10                    -> "0123456789" eof
		b Q     write f 4 x                    -> lock refused
	`},
}
