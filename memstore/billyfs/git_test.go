package billyfs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-billy/v5/util"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	"github.com/go-git/go-git/v5/plumbing/transport/server"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

var author = &object.Signature{Name: "A", Email: "a@example.org", When: time.Unix(1_700_000_000, 0)}

// files reads a working tree: contents by path, links and executables marked.
func files(t *testing.T, f billy.Filesystem) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := util.Walk(f, "", func(name string, fi os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case name == ".git":
			return filepath.SkipDir
		case fi.IsDir():
		case fi.Mode()&os.ModeSymlink != 0:
			target, err := f.Readlink(name)
			found[name] = "-> " + target
			return err
		default:
			text, err := read(f, name)
			found[name] = fmt.Sprintf("%v %s", fi.Mode()&0o100 != 0, text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// commit commits everything that changed.
func commit(t *testing.T, w *git.Worktree, message string) plumbing.Hash {
	t.Helper()
	if err := w.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		t.Fatal(err)
	}
	hash, err := w.Commit(message, &git.CommitOptions{Author: author})
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// A repository on disk is cloned into a store, worked on, pushed back and
// checked out on disk again.
func TestGit(t *testing.T) {
	disk := osfs.New(t.TempDir(), osfs.WithBoundOS())
	store := func(f billy.Filesystem) *filesystem.Storage {
		dot, err := f.Chroot(".git")
		if err != nil {
			t.Fatal(err)
		}
		return filesystem.NewStorage(dot, cache.NewObjectLRUDefault())
	}
	origin := store(disk)
	repo, err := git.Init(origin, disk)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	for n := range 60 {
		text := strings.Repeat(fmt.Sprintf("line %d\n", n), n)
		if err := util.WriteFile(disk, fmt.Sprintf("dir%d/sub/file%d", n%7, n), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := util.WriteFile(disk, "run.sh", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := disk.Symlink("dir1/sub", "link"); err != nil {
		t.Fatal(err)
	}
	first := commit(t, tree, "first")

	loader := server.MapLoader{"ram://origin/repo": origin}
	client.InstallProtocol("ram", server.NewClient(loader))
	defer client.InstallProtocol("ram", nil)

	root := newFS(t, "")
	f, err := root.Chroot("work")
	if err != nil {
		t.Fatal(err)
	}
	clone, err := git.Clone(store(f), f, &git.CloneOptions{URL: "ram://origin/repo"})
	if err != nil {
		t.Fatal(err)
	}
	want := files(t, disk)
	if got := files(t, f); !maps.Equal(got, want) {
		t.Fatalf("the clone has %d files, the origin %d, or they differ", len(got), len(want))
	}
	work, err := clone.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	clean := func() {
		t.Helper()
		if status, err := work.Status(); err != nil || !status.IsClean() {
			t.Errorf("not clean: %v\n%v", err, status)
		}
	}
	clean()

	// Change, remove, rename and add; go back and forth.
	if err := work.Checkout(&git.CheckoutOptions{Branch: "refs/heads/topic", Create: true}); err != nil {
		t.Fatal(err)
	}
	plant(t, root, "work/dir1/sub/file1 changed\nwork/new/file new")
	if err := f.Remove("run.sh"); err != nil {
		t.Fatal(err)
	}
	if err := f.Rename("dir2", "moved"); err != nil {
		t.Fatal(err)
	}
	topic := commit(t, work, "second")
	clean()
	changed := files(t, f)
	for _, c := range []struct {
		hash plumbing.Hash
		want map[string]string
	}{{first, want}, {topic, changed}} {
		if err := work.Checkout(&git.CheckoutOptions{Hash: c.hash}); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(files(t, f), c.want) {
			t.Errorf("checkout of %v differs", c.hash)
		}
		clean()
	}

	// Opened again, everything is there.
	again, err := git.Open(store(f), f)
	if err != nil {
		t.Fatal(err)
	}
	commits, err := again.Log(&git.LogOptions{From: topic})
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	if err := commits.ForEach(func(c *object.Commit) error {
		messages = append(messages, c.Message)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(messages) != "[second first]" {
		t.Errorf("history %q", messages)
	}
	if err := again.Push(&git.PushOptions{RefSpecs: []config.RefSpec{"refs/heads/topic:refs/heads/topic"}}); err != nil {
		t.Fatal(err)
	}
	if err := tree.Checkout(&git.CheckoutOptions{Branch: "refs/heads/topic"}); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(files(t, disk), changed) {
		t.Error("what was pushed differs")
	}
}
