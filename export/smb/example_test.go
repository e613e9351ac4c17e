package smb_test

import (
	"fmt"
	"log"
	"net"

	"ramserver/export"
	"ramserver/export/smb"
	"ramserver/export/smb/ntlm"
	"ramserver/memstore"

	"github.com/hirochachacha/go-smb2"
)

// A store as a share of an SMB server, for one user with a password.
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
	alice := smb.User{Name: "alice", Hash: ntlm.HashPassword("secret"), Cred: memstore.Cred{UID: 1000, GID: 1000}}
	users, err := smb.NewUsers("", alice) // in no file
	if err != nil {
		log.Fatal(err)
	}
	server, err := smb.New(smb.Config{Exports: exports, Users: users, Signing: smb.Required})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(l)

	// Any client will do.
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	client := smb2.Dialer{Initiator: &smb2.NTLMInitiator{User: "alice", Password: "secret"}}
	session, err := client.Dial(conn)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Logoff()
	share, err := session.Mount("scratch")
	if err != nil {
		log.Fatal(err)
	}
	if err := share.WriteFile("hello", []byte("from SMB"), 0o644); err != nil {
		log.Fatal(err)
	}
	b, err := share.ReadFile("hello")
	fmt.Printf("%s %v\n", b, err)
	// Output: from SMB <nil>
}
