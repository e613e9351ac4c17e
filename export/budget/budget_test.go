package budget

import (
	"testing"
	"testing/synctest"
)

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kicked := 0
		b := New(10, func() { kicked++ })
		quit := make(chan struct{})
		order := make(chan int, 3)
		if !b.TryTake(9) || b.TryTake(5) {
			t.Fatal("it gave what it does not have, or not what it has")
		}
		go func() { b.Take(8, false, quit); order <- 8 }()
		synctest.Wait()
		go func() { b.Take(2, true, quit); order <- 2 }()
		synctest.Wait()
		if b.TryTake(1) {
			t.Fatal("somebody came before those who wait")
		}
		if kicked != 2 || b.waiting.Load() != 2 {
			t.Fatalf("%d kicks, %d waiting", kicked, b.waiting.Load())
		}
		b.Give(1)
		synctest.Wait()
		if first := <-order; first != 2 {
			t.Fatal("the urgent one was not served first")
		}
		b.Give(8)
		synctest.Wait()
		if <-order; b.waiting.Load() != 0 || b.free != 0 {
			t.Fatalf("%d waiting, %d free", b.waiting.Load(), b.free)
		}
		gone := make(chan bool)
		go func() { gone <- b.Take(1, false, quit) }()
		synctest.Wait()
		close(quit)
		if <-gone {
			t.Fatal("took after the end")
		}
		b.Give(10)
		if b.free != 10 || b.waiting.Load() != 0 {
			t.Fatalf("%d free, %d waiting", b.free, b.waiting.Load())
		}
	})
}
