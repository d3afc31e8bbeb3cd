package consent

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestTrust(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "approvals.json")
	trust := OpenTrust(path)
	a := Approval{Kind: "k", Name: "n", Dir: "/d", Hash: "1"}
	want := func(a Approval, yes bool) {
		t.Helper()
		if ok, err := trust.Approved(a); ok != yes || err != nil {
			t.Errorf("%+v: %v, %v; want %v", a, ok, err, yes)
		}
	}
	want(a, false)
	if err := trust.Approve(a); err != nil {
		t.Fatal(err)
	}
	want(a, true)
	for _, other := range []Approval{{Kind: "k", Name: "n", Dir: "/d", Hash: "2"}, {Kind: "k", Name: "n", Dir: "/e", Hash: "1"}, {Kind: "k", Name: "m", Dir: "/d", Hash: "1"}, {Kind: "j", Name: "n", Dir: "/d", Hash: "1"}} {
		want(other, false)
	}
	newer := a
	newer.Hash = "2"
	if err := trust.Approve(newer); err != nil {
		t.Fatal(err)
	}
	want(a, false) // what was approved first is no longer what it is
	want(newer, true)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if err := trust.Revoke(a); err != nil {
		t.Fatal(err)
	}
	want(newer, false)
}

// Approvals given at the same moment are all kept.
func TestTrustTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals.json")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := OpenTrust(path).Approve(Approval{Kind: "k", Name: fmt.Sprint(i), Hash: "h"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := OpenTrust(path).List(); len(all) != 20 || err != nil {
		t.Errorf("%d approvals, %v", len(all), err)
	}
}

// A file that cannot be read approves nothing and is not written over.
func TestTrustDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals.json")
	if err := os.WriteFile(path, []byte(`[{"kind":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if ok, err := OpenTrust(path).Approved(Approval{}); ok || err == nil {
		t.Errorf("approved %v, %v", ok, err)
	}
	if err := OpenTrust(path).Approve(Approval{}); err == nil {
		t.Error("a damaged file was written over")
	}
}
