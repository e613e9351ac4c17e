package link

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// watch has the janitor come by once a second for a while.
func watch(l *Link, d time.Duration, pressed bool) {
	for range d / time.Second {
		time.Sleep(time.Second)
		synctest.Wait()
		l.Watch(time.Now(), pressed)
	}
	synctest.Wait()
}

func TestReading(t *testing.T) {
	for _, tt := range []struct {
		state   State
		pressed bool
		d       time.Duration
		woken   bool
		err     error
	}{
		{Idle, false, time.Hour, false, nil},
		{Idle, true, time.Hour, false, nil},
		{Reading, false, time.Second, false, nil},
		{Reading, false, 3 * time.Second, true, nil},
		{Reading, true, time.Second, true, nil},
		{Midway, false, StallTime, false, nil},
		{Midway, false, StallTime + 2*time.Second, false, io.ErrClosedPipe},
		{Midway, true, pressedTime + 2*time.Second, false, io.ErrClosedPipe},
	} {
		synctest.Test(t, func(t *testing.T) {
			nc, peer := net.Pipe()
			defer peer.Close()
			defer nc.Close()
			var l Link
			l.Init(nc)
			type result struct {
				n     int
				woken bool
				err   error
			}
			got := make(chan result, 1)
			l.Set(tt.state)
			go func() {
				var r result
				r.n, r.woken, r.err = l.Read(make([]byte, 10))
				got <- r
			}()
			watch(&l, tt.d, tt.pressed)
			want := result{0, tt.woken, tt.err}
			if !tt.woken && tt.err == nil {
				peer.Write([]byte("data"))
				want.n = 4
			}
			if r := <-got; r != want {
				t.Errorf("%+v: %+v, want %+v", tt, r, want)
			}
		})
	}
}

func TestSending(t *testing.T) {
	for _, tt := range []struct {
		name    string
		pressed bool
		every   time.Duration // in which the client takes a byte; 0: never
		pages   bool
		sent    int64
		err     error
	}{
		{"slow", false, 50 * time.Second, false, 4, nil},
		{"slow, of pages", false, 50 * time.Second, true, 4, nil},
		{"stopped", false, 0, false, 0, ErrStalled},
		{"stopped, while others wait", true, 0, false, 0, io.ErrClosedPipe},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, peer := net.Pipe()
				defer nc.Close()
				var l Link
				l.Init(nc)
				var sent int64
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					var pages *net.Buffers
					if tt.pages {
						pages = &net.Buffers{[]byte("re"), []byte("pl")}
					}
					sent, err = l.Send([]byte("repl"), pages)
				}()
				go func() {
					for tt.every > 0 {
						time.Sleep(tt.every)
						if _, err := peer.Read(make([]byte, 1)); err != nil {
							return
						}
					}
				}()
				watch(&l, 5*time.Minute, tt.pressed)
				<-done
				if sent != tt.sent || err != tt.err || l.State() != Running {
					t.Errorf("%d bytes, %v, state %d; want %d, %v", sent, err, l.State(), tt.sent, tt.err)
				}
				peer.Close()
				synctest.Wait()
				time.Sleep(2 * tt.every)
			})
		})
	}
}

// pair is a TCP connection whose server cannot send much at once.
func pair(t *testing.T) (server, client *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); c.Close() })
	server, client = s.(*net.TCPConn), c.(*net.TCPConn)
	server.SetWriteBuffer(32 << 10)
	return server, client
}

// TestSocket sends replies of all kinds in small steps and receives what comes back.
func TestSocket(t *testing.T) {
	nc, client := pair(t)
	var l Link
	l.Init(nc)
	go io.Copy(client, client)
	r := rand.New(rand.NewPCG(1, 2))
	piece := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	for range 300 {
		var all []byte
		var pages *net.Buffers
		if r.IntN(2) == 0 {
			all = piece(r.IntN(1 << r.IntN(20)))
		} else {
			pages = &net.Buffers{}
			for range r.IntN(30) {
				p := piece(r.IntN(1 << r.IntN(15)))
				*pages = append(*pages, p)
				all = append(all, p...)
			}
		}
		sent := make(chan error, 1)
		go func() {
			n, err := l.Send(all, pages)
			if int(n) != len(all) {
				err = errors.Join(err, io.ErrShortWrite)
			}
			sent <- err
		}()
		got := make([]byte, 0, len(all)+1)
		for len(got) < len(all) {
			n, err := l.sock.read(nc, got[len(got):cap(got)])
			if err != nil {
				t.Fatal(err)
			}
			got = got[:len(got)+n]
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, all) {
			t.Fatalf("%d bytes came back as others", len(all))
		}
	}
}

// TestSocketEnds tells what a connection hears when it is woken, when its client does
// not read, and when the client has gone.
func TestSocketEnds(t *testing.T) {
	nc, client := pair(t)
	var l Link
	l.Init(nc)
	l.Wake()
	if n, woken, err := l.Read(make([]byte, 10)); n != 0 || !woken || err != nil {
		t.Fatalf("woken: %d bytes, %v, %v", n, woken, err)
	}

	large := make([]byte, 8<<20)
	for _, pages := range []*net.Buffers{nil, {large[:100<<10], large[:100<<10]}} {
		nc.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		var n int64
		var err error
		for err == nil {
			var m int64
			m, err = l.sock.send(nc, large[:200<<10], pages)
			n += m
			if pages != nil && err == nil {
				*pages = net.Buffers{large[:100<<10], large[:100<<10]}
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a client that does not read: %v", err)
		}
		if pages != nil {
			left := int64(0)
			for _, p := range *pages {
				left += int64(len(p))
			}
			if (n+left)%(200<<10) != 0 {
				t.Fatalf("%d bytes sent, %d left", n, left)
			}
		}
		nc.SetWriteDeadline(time.Time{})
	}

	go io.Copy(io.Discard, client)
	client.CloseWrite()
	if n, woken, err := l.Read(make([]byte, 10)); n != 0 || woken || err != io.EOF {
		t.Fatalf("at the end: %d bytes, %v, %v", n, woken, err)
	}
	client.SetLinger(0)
	client.Close()
	var err error
	for range 100 {
		if _, err = l.Send([]byte("reply"), nil); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("to a client that has gone: %v", err)
	}
	nc.Close()
	if _, _, err := l.Read(make([]byte, 10)); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("read of a closed connection: %v", err)
	}
	if _, err := l.Send([]byte("reply"), nil); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("send to a closed connection: %v", err)
	}
}
