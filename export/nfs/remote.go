package nfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"ramserver/export/nfs/rpc"
	"ramserver/export/nfs/xdr"
)

// remote is a connection to a program of another host, or by netUDP what comes
// near one. It serves one call at a time, as root by AUTH_SYS.
type remote struct {
	net.Conn
	packets          bool
	program, version uint32
	xid              uint32
	stop             func() bool // ends the watch of the context
}

// Limits of a call to another host.
const (
	remoteDial  = 3 * time.Second
	remoteCall  = 5 * time.Second
	packetAgain = time.Second // after which a packet is sent again
)

// encoder is arguments.
type encoder interface{ Encode(*xdr.Writer) }

// dialProgram connects to a program of the host to, by TCP or else by UDP, as
// the host's portmapper at bindPort has it.
func dialProgram(ctx context.Context, from, to netip.Addr, bindPort uint16, program, version uint32) (*remote, error) {
	var errs []error
	for _, network := range []string{netTCP, netUDP} {
		port, err := portOf(ctx, from, to, network, bindPort, program, version)
		if err == nil {
			var r *remote
			if r, err = dialRemote(ctx, network, from, netip.AddrPortFrom(to, port), program, version); err == nil {
				return r, nil
			}
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// portOf asks a host's portmapper for a program: version 2, which is
// everywhere, or for IPv6 version 4.
func portOf(ctx context.Context, from, to netip.Addr, network string, bindPort uint16, program, version uint32) (uint16, error) {
	v := uint32(rpc.PortmapVersion)
	if to.Is6() {
		v = rpc.RPCBindVersion4
	}
	r, err := dialRemote(ctx, network, from, netip.AddrPortFrom(to, bindPort), rpc.ProgramPortmap, v)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var port uint16
	if v == rpc.PortmapVersion {
		m := rpc.Mapping{Program: program, Version: version, Proto: rpc.ProtoTCP}
		if r.packets {
			m.Proto = rpc.ProtoUDP
		}
		res, err := r.call(rpc.BindGetPort, &m)
		if err != nil {
			return 0, err
		}
		port = uint16(res.Uint32())
	} else {
		res, err := r.call(rpc.BindGetAddr, &rpc.Binding{Program: program, Version: version, NetID: network + "6"})
		if err != nil {
			return 0, err
		}
		a, _ := rpc.ParseUaddr(res.String(maxBindRecord)) // "" is none
		port = a.Port()
	}
	if port == 0 {
		return 0, fmt.Errorf("%s has no program %d version %d by %s", to, program, version, network)
	}
	return port, nil
}

// dialRemote connects from an address of ours, if from is one, and where
// possible from a reserved port, which shows that root of this machine calls.
// The end of ctx is the connection's too.
func dialRemote(ctx context.Context, network string, from netip.Addr, to netip.AddrPort, program, version uint32) (*remote, error) {
	for port := 1023; ; port-- {
		if port < 600 {
			port = 0 // the system chooses
		}
		d := net.Dialer{Timeout: remoteDial}
		if network == netTCP {
			d.LocalAddr = &net.TCPAddr{IP: from.AsSlice(), Port: port}
		} else {
			d.LocalAddr = &net.UDPAddr{IP: from.AsSlice(), Port: port}
		}
		c, err := d.DialContext(ctx, network, to.String())
		switch {
		case err == nil:
			r := &remote{Conn: c, packets: network == netUDP, program: program, version: version}
			r.stop = context.AfterFunc(ctx, func() { c.Close() })
			return r, nil
		case port == 0:
			return nil, err
		case errors.Is(err, syscall.EACCES):
			port = 0
		case !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL):
			return nil, err
		}
	}
}

// Close closes the connection.
func (r *remote) Close() error {
	r.stop()
	return r.Conn.Close()
}

// send makes a call and does not wait for its result.
func (r *remote) send(proc uint32, args encoder) error {
	r.SetDeadline(time.Now().Add(remoteCall))
	_, err := r.Write(r.message(proc, args))
	return err
}

// call makes a call and returns its results.
func (r *remote) call(proc uint32, args encoder) (xdr.Reader, error) {
	b := r.message(proc, args)
	end := time.Now().Add(remoteCall)
	r.SetDeadline(end)
	if _, err := r.Write(b); err != nil {
		return xdr.Reader{}, err
	}
	for {
		if r.packets {
			r.SetReadDeadline(time.Now().Add(packetAgain))
		}
		rec, err := r.receive()
		if r.packets && errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(end) {
			if _, err = r.Write(b); err == nil {
				continue
			}
		}
		if err != nil {
			return xdr.Reader{}, err
		}
		res := xdr.NewReader(rec)
		if xid, err := rpc.DecodeReply(&res); xid == r.xid {
			return res, err
		}
		// To an earlier message, or to the same once more.
	}
}

// message is a call with a new xid.
func (r *remote) message(proc uint32, args encoder) []byte {
	r.xid++
	var w xdr.Writer
	at := rpc.BeginRecord(&w)
	h := rpc.Call{XID: r.xid, Program: r.program, Version: r.version, Procedure: proc}
	h.Cred.Flavor, h.Cred.Machine = rpc.AuthSys, hostName()
	h.Encode(&w)
	if args != nil {
		args.Encode(&w)
	}
	rpc.EndRecord(&w, at, 0)
	if r.packets {
		return w.B[rpc.MarkSize:]
	}
	return w.B
}

func (r *remote) receive() ([]byte, error) {
	if !r.packets {
		return readRecord(r)
	}
	b := make([]byte, maxBindRecord)
	n, err := r.Read(b)
	return bytes.Clone(b[:n]), err
}

// hostName is this machine's name, cut to what any message can carry.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "ramserver"
	}
	return name[:min(len(name), 255)]
}
