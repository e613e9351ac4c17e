package link

import (
	"io"
	"net"
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
