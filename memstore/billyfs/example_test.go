package billyfs_test

import (
	"fmt"
	"log"

	"ramserver/memstore"
	"ramserver/memstore/billyfs"

	"github.com/go-git/go-billy/v5/util"
)

// A store of 64 MiB that is used by the superuser and looked at by somebody else.
func Example() {
	store, err := memstore.New(memstore.Config{Name: "scratch", Size: 64 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	root := billyfs.New(store, nil)
	if err := util.WriteFile(root, "etc/motd", []byte("hello"), 0o600); err != nil {
		log.Fatal(err)
	}
	b, err := util.ReadFile(root, "etc/motd")
	fmt.Printf("%s %v\n", b, err)

	alice := billyfs.New(store, &memstore.Caller{Cred: memstore.Cred{UID: 1000, GID: 1000}})
	_, err = alice.Open("etc/motd")
	fmt.Println(err)
	// Output:
	// hello <nil>
	// open etc/motd: permission denied
}
