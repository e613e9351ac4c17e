package nfs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"ramserver/export/nfs/nfs3"
	"ramserver/memstore"
)

// Every error that the store exports has a status of its own choice.
func TestStatusOfEveryStoreError(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../memstore/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	byText := make(map[string]nfs3.Status)
	for err, s := range storeStatus {
		byText[err.Error()] = s
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
		if _, ok := byText[text]; !ok {
			t.Errorf("memstore.%s has no status", v.Names[0].Name)
		}
		return true
	})
	if found != len(storeStatus) {
		t.Errorf("the store exports %d errors, the table has %d", found, len(storeStatus))
	}
}

func TestStatusOf(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want nfs3.Status
	}{
		{nil, nfs3.OK},
		{memstore.ErrShareViolation, nfs3.ErrAcces},
		{memstore.ErrLocked, nfs3.ErrAcces},
		{nfs3.ErrBadHandle, nfs3.ErrBadHandle},
		{fmt.Errorf("wrapped: %w", memstore.ErrNoSpace), nfs3.ErrNoSpc},
		{&memstore.Wait{}, nfs3.ErrJukebox},
		{fmt.Errorf("wrapped: %w", &memstore.Wait{}), nfs3.ErrJukebox},
		{errors.New("anything else"), nfs3.ErrServerFault},
	} {
		if got := statusOf(tt.err); got != tt.want {
			t.Errorf("statusOf(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}
