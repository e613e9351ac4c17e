package nfs

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"ramserver/export/budget"
	"ramserver/export/nfs/client"
	"ramserver/export/nfs/nfs3"
	"ramserver/export/nfs/rpc"
)

// The environment of a process that only opens connections: to where, how many,
// and whether they send half of a call.
const (
	openAddr  = "NFS_TEST_OPEN_ADDR"
	openCount = "NFS_TEST_OPEN_COUNT"
	openHalf  = "NFS_TEST_OPEN_HALF"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(openAddr); addr != "" {
		if err := openMany(addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// openMany opens connections, says so, and holds them until its input ends.
func openMany(addr string) error {
	n, err := strconv.Atoi(os.Getenv(openCount))
	if err != nil {
		return err
	}
	var conns []net.Conn
	for range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		if os.Getenv(openHalf) != "" {
			half := calls(call3(rpc.ProgramNFS, nfs3.ProcGetAttr, &nfs3.FHArgs{FH: make([]byte, handleSize)}))
			if _, err := c.Write(half[:50]); err != nil {
				return err
			}
		}
		conns = append(conns, c)
	}
	fmt.Println("open")
	bufio.NewReader(os.Stdin).ReadByte()
	runtime.KeepAlive(conns)
	return nil
}

var manyConns = flag.Int("conns", 1000, "connections of each kind in TestManyConnections")

// Thousands of connections that are idle, or stuck in half of a call, cost
// little, and the server serves others.
func TestManyConnections(t *testing.T) {
	n := *manyConns
	if need := 2*n + 300; budget.MaxFiles() < need {
		t.Skipf("needs %d open files; the limit is %d", need, budget.MaxFiles())
	}
	r := start(t, func(c *Config) { c.Buffers = 64 << 20 })
	fh := r.create("f")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	open := func(half string) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), openAddr+"="+r.addr, fmt.Sprint(openCount, "=", n), openHalf+"="+half)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			cmd.Wait()
		})
		if line, err := bufio.NewReader(out).ReadBytes('\n'); err != nil || !bytes.Equal(line, []byte("open\n")) {
			t.Fatalf("the clients say %q, %v", line, err)
		}
	}
	open("")
	wait(t, "all are accepted", func() bool { return r.s.Stats().Accepted > uint64(n) })
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)) / int64(n)
	t.Logf("%d bytes for an idle connection, its stack among them", each)
	if each > 12<<10 {
		t.Errorf("an idle connection takes %d bytes", each)
	}

	// Those in half of a call hold what memory they can get, until others
	// want it.
	open("yes")
	others := r.dial(client.Options{})
	for range 10 {
		if _, err := others.GetAttr(fh); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse); used > int64(2*n*12<<10+64<<20) {
		t.Errorf("%d MiB in use", used>>20)
	}
}
