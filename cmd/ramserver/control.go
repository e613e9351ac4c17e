package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// The control socket speaks HTTP with JSON bodies: GET /status answers a
// report, POST /stop ends the server and answers the process. While the
// server's own mount is in use it answers status 409, and who uses it, unless
// asked with ?force=true.

// maxReport bounds an answer, in bytes.
const maxReport = 64 << 20

// listenControl opens the control socket, which only this user can use.
func listenControl(path string, log *slog.Logger) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	// Until here the folder's mode has kept others out.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return &ownListener{l, log}, nil
}

// ownListener accepts connections of this user only.
type ownListener struct {
	net.Listener
	log *slog.Logger
}

func (l *ownListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, err := peerUID(c.(*net.UnixConn))
		if err == nil && uid == os.Geteuid() {
			return c, nil
		}
		l.log.Warn("control connection refused", "uid", uid, "err", err)
		c.Close()
	}
}

// controlServer answers over the control socket. When somebody asks for the
// end, unmount is called, whose error refuses it, and then stop.
func controlServer(report func() *report, self *process, unmount func(force bool) error, stop func()) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, report())
	})
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, r *http.Request) {
		if err := unmount(r.FormValue("force") == "true"); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		writeJSON(w, self)
		stop()
	})
	return &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
}

func writeJSON(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(b)
}

// ask sends one request to a server's control socket and decodes the answer.
func ask(ctx context.Context, socket, method, path string, answer any) error {
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://ramserver"+path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return failure{fmt.Errorf("control socket: %w", err)}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxReport+1))
	if err == nil && len(b) > maxReport {
		err = errors.New("the answer is too large")
	}
	if err == nil && resp.StatusCode == http.StatusConflict {
		return failure{errors.New(strings.TrimSpace(string(b)))}
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	if err == nil {
		err = json.Unmarshal(b, answer)
	}
	if err != nil {
		return failure{fmt.Errorf("control socket: %w", err)}
	}
	return nil
}
