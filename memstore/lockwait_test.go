package memstore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lockers are owners of locks of one file, each with an open of his own.
type lockers struct {
	t     *testing.T
	f     *Inode
	opens map[string]*Open

	mu  sync.Mutex
	log []string
}

func newLockers(t *testing.T) *lockers {
	s := newStore(t, 1<<20)
	return &lockers{t: t, f: mustCreate(t, s.Root(), "f", TypeFile), opens: map[string]*Open{}}
}

func (q *lockers) args(who string, off, n uint64, exclusive bool) (*Open, LockArgs) {
	o := q.opens[who]
	if o == nil {
		var err error
		if o, err = q.f.Open(Root(), OpenArgs{Access: AccessRead | AccessWrite}); err != nil {
			q.t.Fatal(err)
		}
		q.opens[who] = o
	}
	return o, LockArgs{Owner: LockOwner{ID: who}, Off: off, N: n, Exclusive: exclusive}
}

func (q *lockers) lock(who string, off, n uint64, exclusive bool) error {
	o, a := q.args(who, off, n, exclusive)
	_, err := o.Lock(a)
	return err
}

func (q *lockers) unlock(who string) {
	o, a := q.args(who, 0, 0, false)
	wantErr(q.t, "unlock by "+who, o.Unlock(a), nil)
}

func (q *lockers) note(what string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.log = append(q.log, what)
}

func (q *lockers) noted() string {
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	text := strings.Join(q.log, " ")
	q.log = nil
	return text
}

// wait locks when it can, late after it is told to, and notes that.
func (q *lockers) wait(who string, off, n uint64, exclusive bool, late time.Duration) {
	o, a := q.args(who, off, n, exclusive)
	a.Wait = true
	go func() {
		_, err := o.Lock(a)
		var w *Wait
		for errors.As(err, &w) {
			<-w.Done()
			time.Sleep(late)
			_, err = o.Lock(a)
		}
		if err != nil {
			who += fmt.Sprintf(":%v", err)
		}
		q.note(who)
	}()
	synctest.Wait()
}

// poll asks for a lock, and keeps a place.
func (q *lockers) poll(who string, off, n uint64, exclusive bool) error {
	o, a := q.args(who, off, n, exclusive)
	a.Poll = func() { q.note(who + "?") }
	_, err := o.Lock(a)
	return err
}

func (q *lockers) end() {
	for _, o := range q.opens {
		o.Close()
	}
	synctest.Wait()
	if x := q.f.x; x != nil && len(x.waiters)+x.turns+x.locks.Len() != 0 {
		q.t.Errorf("%d wait, %d of them have their turn; %d locks", len(x.waiters), x.turns, x.locks.Len())
	}
}

// TestLockTurns: locks are had in the order in which they were waited for.
func TestLockTurns(t *testing.T) {
	for what, do := range map[string]func(q *lockers){
		"in order": func(q *lockers) {
			wantErr(q.t, "a", q.lock("a", 0, 10, true), nil)
			for _, who := range []string{"b", "c", "d"} {
				q.wait(who, 0, 10, true, 0)
			}
			for _, next := range []string{"b", "c", "d"} {
				for _, who := range []string{"a", "b", "c", "d"} {
					if who < next {
						q.unlock(who)
					}
				}
				if got := q.noted(); got != next {
					q.t.Errorf("%q has it, want %q", got, next)
				}
			}
		},
		"several at once": func(q *lockers) {
			wantErr(q.t, "a", q.lock("a", 0, 0, true), nil)
			q.wait("b", 0, 10, true, 0)
			q.wait("c", 5, 10, true, 0)
			q.wait("d", 20, 10, false, 0)
			q.wait("e", 25, 10, false, 0)
			q.unlock("a")
			got := q.noted()
			if len(got) != 5 || !strings.Contains(got, "b") || !strings.Contains(got, "d") || !strings.Contains(got, "e") {
				q.t.Errorf("%q have it, want b, d, e", got)
			}
			q.unlock("b")
			if got := q.noted(); got != "c" {
				q.t.Errorf("%q has it, want c", got)
			}
		},
		"nobody comes between": func(q *lockers) {
			wantErr(q.t, "a", q.lock("a", 0, 10, true), nil)
			q.wait("b", 0, 10, true, LockTurn/2)
			q.unlock("a")
			wantErr(q.t, "c", q.lock("c", 0, 1, false), ErrLocked)
			wantErr(q.t, "c elsewhere", q.lock("c", 10, 1, true), nil)
			time.Sleep(LockTurn)
			if got := q.noted(); got != "b" {
				q.t.Errorf("%q has it, want b", got)
			}
		},
		"too late": func(q *lockers) {
			wantErr(q.t, "a", q.lock("a", 0, 10, true), nil)
			q.wait("b", 0, 10, true, LockTurn+time.Millisecond)
			q.wait("c", 0, 10, true, 0)
			q.unlock("a")
			time.Sleep(LockTurn + time.Second)
			if got := q.noted(); got != "c" {
				q.t.Errorf("%q has it, want c", got)
			}
			q.unlock("c")
			time.Sleep(LockTurn + time.Second)
			q.noted()
		},
		"who has something does not wait for who waits": func(q *lockers) {
			wantErr(q.t, "a", q.lock("a", 0, 10, true), nil)
			wantErr(q.t, "d", q.lock("d", 20, 1, true), nil)
			q.wait("b", 0, 30, true, 0)
			q.wait("c", 0, 10, true, LockTurn/2)
			q.unlock("a") // b still waits for d
			wantErr(q.t, "d", q.lock("d", 0, 1, true), nil)
			q.unlock("d")
			time.Sleep(LockTurn)
			q.noted()
			q.unlock("b")
			q.unlock("c")
			time.Sleep(3 * LockTurn)
			q.noted()
		},
		"who polls is told": func(q *lockers) {
			wantErr(q.t, "a", q.lock("a", 0, 10, true), nil)
			wantErr(q.t, "b", q.poll("b", 0, 10, true), ErrLocked)
			wantErr(q.t, "b again", q.poll("b", 0, 10, true), ErrLocked)
			q.wait("c", 0, 10, true, 0)
			q.unlock("a")
			if got := q.noted(); got != "b?" {
				q.t.Errorf("noted %q", got)
			}
			wantErr(q.t, "b in its turn", q.poll("b", 0, 10, true), nil)
			q.unlock("b")
			if got := q.noted(); got != "c" {
				q.t.Errorf("%q has it, want c", got)
			}
		},
		"who polls and does not come loses his turn": func(q *lockers) {
			wantErr(q.t, "a", q.lock("a", 0, 10, true), nil)
			wantErr(q.t, "b", q.poll("b", 0, 10, true), ErrLocked)
			q.wait("c", 0, 10, true, 0)
			q.unlock("a")
			time.Sleep(LockTurn - time.Millisecond)
			if got := q.noted(); got != "b?" {
				q.t.Errorf("noted %q", got)
			}
			time.Sleep(2 * time.Millisecond)
			if got := q.noted(); got != "c" {
				q.t.Errorf("%q has it, want c", got)
			}
		},
		"who has not polled for long is forgotten": func(q *lockers) {
			wantErr(q.t, "a", q.lock("a", 0, 10, true), nil)
			wantErr(q.t, "b", q.poll("b", 0, 10, true), ErrLocked)
			time.Sleep(pollTime + time.Second)
			wantErr(q.t, "c", q.poll("c", 0, 10, true), ErrLocked)
			q.unlock("a")
			if got := q.noted(); got != "c?" {
				q.t.Errorf("noted %q", got)
			}
		},
		"a close": func(q *lockers) {
			wantErr(q.t, "a", q.lock("a", 0, 10, true), nil)
			q.wait("b", 0, 10, true, 0)
			q.opens["b"].Close()
			if got := q.noted(); got != "b:file is gone" {
				q.t.Errorf("noted %q", got)
			}
			q.wait("c", 0, 10, true, 0)
			q.opens["a"].Close()
			if got := q.noted(); got != "c" {
				q.t.Errorf("%q has it, want c", got)
			}
		},
		"a wait is given up": func(q *lockers) {
			wantErr(q.t, "a", q.lock("a", 0, 10, true), nil)
			o, a := q.args("b", 0, 10, true)
			a.Wait = true
			_, err := o.Lock(a)
			var w *Wait
			if !errors.As(err, &w) {
				q.t.Fatal(err)
			}
			q.wait("c", 0, 10, true, 0)
			q.unlock("a")
			w.Cancel() // in his turn
			if got := q.noted(); got != "c" {
				q.t.Errorf("%q has it, want c", got)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newLockers(t)
				do(q)
				q.end()
			})
		})
	}
}
