package smb

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"ramserver/export/smb/wire"
	"ramserver/memstore"
)

// Every error that the store exports has a status of its own choice.
func TestStatusOfEveryStoreError(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../memstore/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for err := range storeStatus {
		known[err.Error()] = true
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(v.Names[0].Name, "Err") {
			return true
		}
		found++
		text, err := strconv.Unquote(v.Values[0].(*ast.CallExpr).Args[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if !known[text] {
			t.Errorf("memstore.%s has no status", v.Names[0].Name)
		}
		return true
	})
	if found != len(storeStatus) {
		t.Errorf("%d errors of the store, %d statuses", found, len(storeStatus))
	}
}

func TestStatusOf(t *testing.T) {
	r := new(request)
	for _, tt := range []struct {
		err  error
		want wire.Status
	}{
		{nil, wire.StatusOK},
		{memstore.ErrShareViolation, wire.StatusSharingViolation},
		{memstore.ErrDeletePending, wire.StatusDeletePending},
		{fmt.Errorf("more: %w", memstore.ErrNotEmpty), wire.StatusDirectoryNotEmpty},
	} {
		if got := r.status(tt.err); got != tt.want {
			t.Errorf("%v is %v, want %v", tt.err, got, tt.want)
		}
	}
	w := new(memstore.Wait)
	if got := r.status(w); got != wire.StatusPending || r.wait != w {
		t.Errorf("a wait is %v", got)
	}
}
