package nfs_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"ramserver/export"
	"ramserver/export/nfs"
	"ramserver/memstore"
)

// A store that is served at a port of this machine, for
//
//	mount -t nfs -o vers=4.2,port=PORT 127.0.0.1:/ /mnt
func Example() {
	store, err := memstore.New(memstore.Config{Name: "scratch", Size: 64 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	exports, err := export.New(&export.Export{Name: "scratch", Store: store, Root: store.Root()})
	if err != nil {
		log.Fatal(err)
	}
	server, err := nfs.NewServer(nfs.Config{Exports: exports})
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()

	// Calls that are being executed get their answer.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(server.Shutdown(ctx))
	<-served
	// Output: <nil>
}
