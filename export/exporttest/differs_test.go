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
	}},
}

const (
	nfs4x = "nfs 4."
	nfs40 = "nfs 4.0"
	nfs41 = "nfs 4.1"
	goNFS = "nfs3 by go-nfs"
)
