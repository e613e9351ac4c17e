package loopback

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Users finds the processes that keep the mount m from being unmounted, as far
// as this user may see them. It asks the kernel only, never the mount's
// server.
func Users(m *Mounted) []User {
	var users []User
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if how := use(dir, m); how != "" {
			name, _ := os.ReadFile(dir + "/comm")
			users = append(users, User{pid, strings.TrimSpace(string(name)), how})
		}
	}
	return users
}

// use says what the process of a folder of /proc has in a mount, "" if nothing.
func use(dir string, m *Mounted) string {
	for _, link := range []struct{ name, how string }{{"cwd", "current folder"}, {"root", "root folder"}, {"exe", "program"}} {
		if target, err := os.Readlink(dir + "/" + link.name); err == nil && below(target, m.Dir) {
			return link.how + " " + target
		}
	}
	// An open file's mount is exact: proc_pid_fdinfo(5).
	files, _ := os.ReadDir(dir + "/fdinfo")
	for _, f := range files {
		info, _ := os.ReadFile(dir + "/fdinfo/" + f.Name())
		for line := range strings.Lines(string(info)) {
			if id, ok := strings.CutPrefix(line, "mnt_id:"); ok && strings.TrimSpace(id) == strconv.Itoa(m.ID) {
				target, _ := os.Readlink(dir + "/fd/" + f.Name())
				return "open " + target
			}
		}
	}
	// A mapping outlives its descriptor: proc_pid_maps(5) has its device.
	device := fmt.Sprintf("%02x:%02x", m.Major, m.Minor)
	maps, _ := os.ReadFile(dir + "/maps")
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if len(f) >= 6 && f[3] == device && f[4] != "0" {
			return "mapped " + strings.Join(f[5:], " ")
		}
	}
	return ""
}

// below tells whether a path is dir or in it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
