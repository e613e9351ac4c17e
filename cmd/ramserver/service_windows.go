package main

import (
	"log/slog"
	"os"

	"golang.org/x/sys/windows/svc"
)

// underManager has the service manager of Windows, if it started this process,
// end the server by stop; done says that it has ended.
func underManager(log *slog.Logger, name string, stop func()) (done func(failed bool)) {
	is, err := svc.IsWindowsService()
	if err != nil || !is {
		return func(bool) {}
	}
	h := &handler{stop: stop, ended: make(chan bool), gone: make(chan struct{})}
	go func() {
		defer close(h.gone)
		if err := svc.Run(name, h); err != nil {
			log.Error("service manager", "err", err)
			os.Exit(1)
		}
	}()
	return func(failed bool) {
		h.ended <- failed
		<-h.gone
	}
}

type handler struct {
	stop  func()
	ended chan bool // whether it failed
	gone  chan struct{}
}

// Execute is svc.Handler's.
func (h *handler) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	status <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	for {
		select {
		case failed := <-h.ended:
			if failed {
				return true, 1
			}
			return false, 0
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				status <- r.CurrentStatus
			case svc.Stop, svc.Shutdown:
				status <- svc.Status{State: svc.StopPending}
				h.stop()
			}
		}
	}
}
