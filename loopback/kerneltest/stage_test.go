//go:build kernel && linux

package kerneltest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// makeRepo makes a git repository of 200 files in 20 commits.
func makeRepo(dir string) error {
	git := func(args ...string) error {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
		return nil
	}
	if err := os.Mkdir(dir, 0755); err != nil {
		return err
	}
	if err := git("init", "-q", "-b", "main"); err != nil {
		return err
	}
	for commit := range 20 {
		for i := range 10 {
			at := filepath.Join(dir, fmt.Sprint("dir", commit%5))
			text := strings.Repeat(fmt.Sprintln("line", i, "of commit", commit), 20*(i+1))
			if err := errors.Join(os.MkdirAll(at, 0755), os.WriteFile(filepath.Join(at, fmt.Sprint("file", commit/5, i)), []byte(text), 0644)); err != nil {
				return err
			}
		}
		if err := errors.Join(git("add", "-A"), git("commit", "-q", "-m", fmt.Sprint("commit ", commit))); err != nil {
			return err
		}
	}
	return nil
}

// makeCProject makes a program of 12 units and a header, and what it prints.
func makeCProject(dir string) error {
	const units = 12
	files := map[string]string{
		"units.h": "#include <stdio.h>\n",
		"Makefile": "objects := $(patsubst %.c,%.o,$(wildcard *.c))\nprog: $(objects)\n\tcc -o $@ $^\n" +
			"%.o: %.c units.h\n\tcc $< -O1 -c -o $@\n",
	}
	body, sum := "", 0
	for i := range units {
		files["units.h"] += fmt.Sprintf("int unit%d(int);\n", i)
		files[fmt.Sprintf("unit%d.c", i)] = fmt.Sprintf("#include \"units.h\"\nint unit%d(int n) { return n * %d + 1; }\n", i, i)
		body += fmt.Sprintf("\tsum += unit%d(7);\n", i)
		sum += 7*i + 1
	}
	files["main.c"] = "#include \"units.h\"\nint main(void) {\n\tint sum = 0;\n" + body + "\tprintf(\"%d\\n\", sum);\n\treturn 0;\n}\n"
	files["expected"] = fmt.Sprintln(sum)
	err := os.Mkdir(dir, 0755)
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0644))
	}
	return err
}

// makeTree makes a source tree, a part of Go's own, and what is special: links,
// modes, odd names, a sparse file.
func makeTree(dir string) error {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	src := filepath.Join(strings.TrimSpace(string(goroot)), "src", "net")
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(src)); err != nil {
		return err
	}
	odd, links := filepath.Join(dir, "odd"), filepath.Join(dir, "links")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "empty", "deep"), 0755), os.Mkdir(odd, 0750), os.Mkdir(links, 0755)); err != nil {
		return err
	}
	for i, name := range []string{" leading space", "new\nline", "-dash", "umlaut-ä", "\xff\xfe", strings.Repeat("long", 63), "back\\slash", "*"} {
		if err := os.WriteFile(filepath.Join(odd, name), []byte(name), os.FileMode(0400+i)); err != nil {
			return err
		}
	}
	file := filepath.Join(links, "file")
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		return err
	}
	defer sparse.Close()
	_, err = sparse.WriteAt([]byte("data"), 5<<20)
	return errors.Join(err,
		os.WriteFile(file, []byte("linked"), 0644),
		os.Link(file, filepath.Join(links, "second")),
		os.Symlink("file", filepath.Join(links, "symlink")),
		os.Symlink("nowhere", filepath.Join(links, "dangling")),
		os.Symlink(strings.Repeat("x", 1000), filepath.Join(links, "long")),
		os.Chmod(file, 0755|os.ModeSetgid),
	)
}
