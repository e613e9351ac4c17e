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
	"ramserver/export/nfs/nfs4"
	"ramserver/memstore"
)

// Every error that the store exports has a status of its own choice.
func TestStatusOfEveryStoreError(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../memstore/errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	v3, v4 := make(map[string]bool), make(map[string]bool)
	for err := range storeStatus {
		v3[err.Error()] = true
	}
	for err := range storeStatus4 {
		v4[err.Error()] = true
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
		if !v3[text] || !v4[text] {
			t.Errorf("memstore.%s has no status: in version 3 %v, in 4 %v", v.Names[0].Name, v3[text], v4[text])
		}
		return true
	})
	if found != len(storeStatus) || found != len(storeStatus4) {
		t.Errorf("the store exports %d errors, the tables have %d and %d", found, len(storeStatus), len(storeStatus4))
	}
}

func TestStatusOf(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want nfs3.Status
	}{
		{nil, nfs3.OK},
		{memstore.ErrDeletePending, nfs3.ErrAcces},
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

func TestStatus4Of(t *testing.T) {
	for _, tt := range []struct {
		err  error
		op   nfs4.Op
		want nfs4.Status
	}{
		{nil, nfs4.OpRead, nfs4.OK},
		{memstore.ErrDeletePending, nfs4.OpOpen, nfs4.ErrShareDenied},
		{memstore.ErrShareViolation, nfs4.OpOpen, nfs4.ErrShareDenied},
		{memstore.ErrShareViolation, nfs4.OpRemove, nfs4.ErrFileOpen},
		{memstore.ErrShareViolation, nfs4.OpRename, nfs4.ErrFileOpen},
		{memstore.ErrShareViolation, nfs4.OpRead, nfs4.ErrLocked},
		{memstore.ErrLocked, nfs4.OpWrite, nfs4.ErrLocked},
		{nfs3.ErrBadHandle, nfs4.OpPutFH, nfs4.ErrBadHandle},
		{nfs3.ErrXDev, nfs4.OpPutFH, nfs4.ErrXDev},
		{nfs4.ErrBadStateid, nfs4.OpRead, nfs4.ErrBadStateid},
		{fmt.Errorf("wrapped: %w", memstore.ErrNoSpace), nfs4.OpWrite, nfs4.ErrNoSpc},
		{&memstore.Wait{}, nfs4.OpRead, nfs4.ErrDelay},
		{fmt.Errorf("wrapped: %w", &memstore.Wait{}), nfs4.OpRead, nfs4.ErrDelay},
		{errors.New("anything else"), nfs4.OpRead, nfs4.ErrServerFault},
	} {
		if got := status4Of(tt.err, tt.op); got != tt.want {
			t.Errorf("%v: status4Of(%v) = %v, want %v", tt.op, tt.err, got, tt.want)
		}
	}
}
