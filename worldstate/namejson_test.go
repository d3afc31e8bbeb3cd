package worldstate

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyName draws names of which most are no UTF-8.
func anyName(t *rapid.T, label string) string {
	return string(rapid.SliceOfN(rapid.SampledFrom([]byte("a/<&\"\\\xff\xfe\x80\xc3\xa9\n")), 1, 8).Draw(t, label))
}

// comesBack checks that a value is the same after a way through JSON.
func comesBack[T any](t *rapid.T, v T) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if !reflect.DeepEqual(back, v) {
		t.Fatalf("%s came back as %+v, was %+v", data, back, v)
	}
}

// TestNamesInJSON: every name comes back from JSON with its bytes.
func TestNamesInJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, from := anyName(t, "name"), anyName(t, "from")
		list := []string{from, "plain", name}
		skips := []Skip{{Path: name, Reason: "a reason"}, {Path: "plain", Reason: "another"}}
		comesBack(t, skips)
		comesBack(t, Item{Path: name, Side: Side{Type: "file", Mode: "0644"}, SizeBytes: 3})
		comesBack(t, Change{Path: name, From: from, Kind: Renamed, New: &Side{Type: "file"}, Similarity: 7})
		comesBack(t, Problem{Object: "o", Path: name, Snapshot: "s", Error: "e"})
		comesBack(t, Forked{ID: "i", Dir: name, Tree: "t", Files: 2, Missing: skips})
		comesBack(t, Plan{Hash: "h", Target: "t", Write: list, Delete: []string{name}, Keep: skips})
		comesBack(t, Result{Source: "s", Target: "t", Written: []string{}, Deleted: list, Kept: skips, Tree: "t", Exact: true})
		comesBack(t, Snapshot{ID: "i", Tree: "t", Skipped: skips, Notes: skips})
	})
}

// TestNamesInJSONAsTheyWere: where every name is UTF-8 nothing is added, and a
// place that the list does not have is passed over.
func TestNamesInJSONAsTheyWere(t *testing.T) {
	data, err := json.Marshal([]any{Plan{Write: []string{"é"}}, Change{Path: "é"}, Result{}, Skip{}, Item{}, Problem{}, Forked{}})
	if err != nil || strings.Contains(string(data), "_bytes") {
		t.Errorf("%s %v", data, err)
	}
	var r Result
	if err := json.Unmarshal([]byte(`{"written":["a"],"written_bytes":{"7":"/w==","-1":"/w=="}}`), &r); err != nil || r.Written[0] != "a" {
		t.Errorf("%+v %v", r, err)
	}
	for _, bad := range []string{`{"path":3}`, `[]`, `{"path_bytes":"?"}`} {
		if json.Unmarshal([]byte(bad), new(Skip)) == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
