package exporttest

// differs lists what a target answers otherwise than the store, and why.
// Without lines, a script differs as a whole. target is what the names of one or
// more targets begin with.
var differs = []struct {
	target, script, why string
	lines               []string
}{
	{nfs4x, "create again", "OPEN says what is in the way", []string{
		"ann create d 0644 -> isdir",
		"ann create l 0644 -> symlink",
	}},
	{nfs4x, "directories", "REMOVE removes files and empty directories", []string{
		"ann rmdir d/f -> ok",
		"ann remove d/e -> ok",
		"ann rmdir d/e -> noent",
		"ann remove d/f -> noent",
	}},
	{nfs4x, "dot and dot-dot", "they are no names", []string{
		"ann mkdir d/. 0755 -> badname",
		"ann create d/.. 0644 -> badname",
		"ann rmdir d/e/. -> badname",
	}},
	{nfs4x, "hard links", "LINK of a directory has a status of its own", []string{
		"ann link d e -> isdir",
	}},
	{nfs4x, "symbolic links", "symbolic links have a status of their own", []string{
		"ann lookup m/x -> symlink",
		"ann create m/x 0644 -> symlink",
	}},
	{nfs41, "symbolic links", "wrong types have a status of their own", []string{
		"ann readlink f -> wrong_type",
	}},
	{nfs41, "special files", "wrong types have a status of their own", []string{
		"ann write x 0 x -> wrong_type",
		"ann read x 0 1 -> wrong_type",
	}},
	{nfs4x, "rename", "the directory itself is no name", []string{
		"ann rename . y -> badname",
	}},
	{smbName, "create again", "a directory or a link in the way is said to be one", []string{
		"ann create d 0644 -> isdir",
		"ann create l 0644 -> symlink",
	}},
	{smbName, "exclusive create", "CREATE has no verifier", nil},
	{smbName, "directories", "a directory's links are its names", []string{
		"ann stat d type mode nlink -> dir 0750 1",
		"ann stat d nlink -> 1",
	}},
	{smbName, "directories", "what is not a directory on the way is not a path", []string{
		"ann create f/x 0644 -> noent",
		"ann lookup f/x -> noent",
	}},
	{smbName, "dot and dot-dot", "they are no names, and d/.. is the root before anything is looked up", []string{
		"ann mkdir d/. 0755 -> badname",
		"ann create d/.. 0644 -> isdir",
		"ann rmdir d/e/. -> badname",
	}},
	{smbName, "names", "a name that is too long is none", []string{
		"ann create n*256 0644 -> badname",
		"ann lookup n*256 -> badname",
		"ann mkdir n*256 0755 -> badname",
	}},
	{smbName, "names", "names are the same without regard to case", []string{
		"ann lookup f -> ok",
	}},
	{smbName, "hard links", "a directory has a status of its own, and what is not one on the way is not a path", []string{
		"ann link d e -> isdir",
		"ann link g g/x -> noent",
	}},
	{smbName, "symbolic links", "symbolic links have a status of their own", []string{
		"ann lookup m/x -> symlink",
		"ann create m/x 0644 -> symlink",
	}},
	{smbName, "symbolic links", "a reparse point has 16 KiB for a target that is there twice", []string{
		"ann symlink n n*4095 -> io_reparse_data_invalid",
		"ann readlink n -> noent",
		"ann symlink o n*4096 -> io_reparse_data_invalid",
	}},
	{smbName, "special files", "there is no status but ACCESS_DENIED, and no data of what is no file", []string{
		"ann mknod x chr 0600 -> acces",
		"ann write x 0 x -> invalid_device_request",
		"ann read x 0 1 -> invalid_device_request",
	}},
	{smbName, "rename", "a directory is never replaced", []string{
		"ann rename d/h d -> notempty",
		"ann rename e d/h -> acces",
		"ann rename d e -> acces",
		"ann list ./. -> . .. d e",
		"ann stat e nlink -> 1",
	}},
	{smbName, "rename", "what is no name is a bad one", []string{
		"ann rename . y -> badname",
		"ann rename x n*256 -> badname",
	}},
	{smbName, "rename of hard links", "the old name goes in any case", []string{
		"ann list . -> . .. g",
		"ann stat f nlink -> noent",
	}},
	{smbName, "handles", "what is not open is only found by its name", nil},
	{smbName, "a name replaced", "what is not open is only found by its name", []string{
		"ann stat @h size -> 0",
	}},
	{smbName, "permissions of files", "an owner may do what the mode says", []string{
		"ann read f 0 9 -> acces",
		"ann write f 0 mine -> acces",
		"eve read ./f 0 9 -> \"root\" eof",
	}},
	{smbName, "sticky", "there is no status but ACCESS_DENIED", []string{
		"bob remove t/a -> acces",
		"bob rename t/a t/b -> acces",
		"bob rename t/b t/a -> acces",
	}},
	{smbName, "access", "who may read a file may execute it", []string{
		"ann access f -> rwx",
		"bob access f -> r-x",
		"root access f -> rwx",
	}},
	{smbName, "owner and mode", "there is no status but ACCESS_DENIED", []string{
		"bob chmod f 0777 -> acces",
		"bob chown f 1001:100 -> acces",
		"ann chown f 1001:100 -> acces",
		"ann chown f 1000:50 -> acces",
		"ann chmod f 0600 -> acces",
	}},
	{smbName, "times", "times are in units of 100 ns, and who may write a file may set them", []string{
		"ann stat f atime mtime -> 1000000000 2000000000",
		"ann stat f mtime atime -> 4294967295999999900 0",
		"bob utimes f 1 1 -> acces",
		"bob utimes ./f 1 1 -> ok",
	}},
	{smbName, "times", "what is not open is only found by its name", []string{
		"ann changes i rename i h -> noent",
	}},
	{smbName, "guard", "SET_INFO has no guard", nil},
	{goNFS, "hard links", "LINK is decoded wrongly by go-nfs, and refused before it", nil},
	{goNFS, "rename of hard links", "LINK is refused", nil},
	{goNFS, "exclusive create", "EXCLUSIVE is NOTSUPP", nil},
	{goNFS, "access", "ACCESS grants all that is asked for", nil},
	{goNFS, "sticky", "the sticky bit cannot be set", nil},
	{goNFS, "setgid directory", "the set-id bits cannot be set", nil},
	{goNFS, "set-id bits", "the set-id bits cannot be set", []string{
		"root stat f mode -> 0755",
	}},
	{goNFS, "files", "READ and WRITE of what is not a file have another status", []string{
		"ann read . 0 10 -> acces",
		"ann write . 0 x -> inval",
	}},
	{goNFS, "create again", "UNCHECKED empties a file that exists, and sets its mode", []string{
		"ann stat f mode size -> 0600 0",
	}},
	{goNFS, "create again", "CREATE and MKDIR answer ACCES where the store refuses", []string{
		"ann mkdir f 0755 -> acces",
		"ann create l 0644 -> acces",
	}},
	{goNFS, "directories", "REMOVE removes empty directories, RMDIR files, and what is not empty is IO", []string{
		"ann rmdir d -> io",
		"ann rmdir d/f -> ok",
		"ann remove d/e -> ok",
		"ann rmdir d/e -> noent",
		"ann remove d/f -> noent",
	}},
	{goNFS, "dot and dot-dot", "CREATE answers ACCES, RMDIR IO where the store refuses", []string{
		"ann create d/.. 0644 -> acces",
		"ann rmdir d/e/. -> io",
	}},
	{goNFS, "names", "LOOKUP answers NOENT for every error", []string{
		"ann lookup n*256 -> noent",
	}},
	{goNFS, "permissions of directories", "LOOKUP answers NOENT for every error", []string{
		"eve lookup d/f -> noent",
	}},
	{goNFS, "symbolic links", "SYMLINK answers ACCES where the store refuses", []string{
		"ann symlink o n*4096 -> acces",
	}},
	{goNFS, "special files", "MKNOD of a character device says OK and makes nothing", []string{
		"root stat c type -> noent",
		"ann mknod x chr 0600 -> ok",
	}},
	{goNFS, "special files", "READ of what is not a file has another status", []string{
		"ann read x 0 1 -> acces",
	}},
	{goNFS, "rename", "RENAME answers IO for most errors", []string{
		"ann rename d/h d -> io",
		"ann rename e d/h -> io",
		"ann rename e d -> io",
		"ann rename e e/sub/x -> io",
		"ann rename . y -> io",
	}},
	{goNFS, "owner and mode", "SETATTR answers ACCES where the store has PERM", []string{
		"bob chmod f 0777 -> acces",
		"bob chown f 1001:100 -> acces",
		"ann chown f 1001:100 -> acces",
		"ann chown f 1000:50 -> acces",
		"ann chmod f 0600 -> acces",
	}},
	{goNFS, "times", "atime and ctime are shown as mtime, and LINK is refused", []string{
		"ann stat f atime mtime -> 2000000002 2000000002",
		"ann stat f mtime atime -> 4294967295999999999 4294967295999999999",
		"ann changes f chmod f 0600 -> nothing",
		"ann changes f link f g -> notsupp",
		"ann changes i rename i h -> nothing",
	}},
	{goNFS, "times", "SETATTR answers ACCES where the store has PERM, and asks for ownership to touch", []string{
		"bob utimes f 1 1 -> acces",
		"bob touch ./f -> acces",
		"bob utimes ./f 1 1 -> acces",
	}},
}

const (
	nfs4x = "nfs 4."
	nfs40 = "nfs 4.0"
	nfs41 = "nfs 4.1"
	goNFS = "nfs3 by go-nfs"

	smbName = "smb"
)
