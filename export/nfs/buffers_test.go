package nfs

import (
	"testing"
	"testing/synctest"
)

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kicked := 0
		b := budget{free: 10, kick: func() { kicked++ }}
		quit := make(chan struct{})
		order := make(chan int, 3)
		if !b.tryTake(9) || b.tryTake(5) {
			t.Fatal("it gave what it does not have, or not what it has")
		}
		go func() { b.take(8, false, quit); order <- 8 }()
		synctest.Wait()
		go func() { b.take(2, true, quit); order <- 2 }()
		synctest.Wait()
		if b.tryTake(1) {
			t.Fatal("somebody came before those who wait")
		}
		if kicked != 2 || b.waiting.Load() != 2 {
			t.Fatalf("%d kicks, %d waiting", kicked, b.waiting.Load())
		}
		b.give(1)
		synctest.Wait()
		if first := <-order; first != 2 {
			t.Fatal("the urgent one was not served first")
		}
		b.give(8)
		synctest.Wait()
		if <-order; b.waiting.Load() != 0 || b.free != 0 {
			t.Fatalf("%d waiting, %d free", b.waiting.Load(), b.free)
		}
		gone := make(chan bool)
		go func() { gone <- b.take(1, false, quit) }()
		synctest.Wait()
		close(quit)
		if <-gone {
			t.Fatal("took after the end")
		}
		b.give(10)
		if b.free != 10 || b.waiting.Load() != 0 {
			t.Fatalf("%d free, %d waiting", b.free, b.waiting.Load())
		}
	})
}
