package worldstate

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// anyName draws names of which most are no UTF-8.
func anyName(t *rapid.T, label string) string {
	return string(rapid.SliceOfN(rapid.SampledFrom([]byte("a/<&\"\\\xff\xfe\x80\xc3\xa9\n")), 1, 8).Draw(t, label))
}

// named is a value in JSON, the names in it by key, or by key and place in a list.
type named struct {
	value any
	names map[string]string
}

// TestNamesInJSON: the bytes of each name that is not UTF-8 are in JSON beside it, and no
// others are.
func TestNamesInJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, from := anyName(t, "name"), anyName(t, "from")
		list := []string{from, "plain", name}
		inList := func(key string) map[string]string { return map[string]string{key + " 0": from, key + " 2": name} }
		for _, c := range []named{
			{Skip{Path: name}, map[string]string{"path": name}},
			{Item{Path: name, Side: Side{Type: "file"}}, map[string]string{"path": name}},
			{Change{Path: name, From: from}, map[string]string{"path": name, "from": from}},
			{Problem{Path: name}, map[string]string{"path": name}},
			{Forked{Dir: name}, map[string]string{"dir": name}},
			{Plan{Write: list}, inList("write")},
			{Plan{Delete: list}, inList("delete")},
			{Result{Written: list}, inList("written")},
			{Result{Deleted: list}, inList("deleted")},
		} {
			checkNames(t, c)
		}
	})
}

func checkNames(t *rapid.T, c named) {
	t.Helper()
	data, err := json.Marshal(c.value)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	odd := 0
	for at, name := range c.names {
		key, place, listed := strings.Cut(at, " ")
		text, exact := all[key], all[key+"_bytes"]
		if listed {
			n, _ := strconv.Atoi(place)
			text = text.([]any)[n]
			byPlace, _ := exact.(map[string]any)
			exact = byPlace[place]
		}
		if utf8.ValidString(name) {
			if text != name || exact != nil {
				t.Fatalf("%s: %q is %q and %v", data, name, text, exact)
			}
			continue
		}
		odd++
		if exact != base64.StdEncoding.EncodeToString([]byte(name)) {
			t.Fatalf("%s: of %q the bytes are %v", data, name, exact)
		}
	}
	if odd == 0 && strings.Contains(string(data), "_bytes") {
		t.Fatalf("%s: every name is UTF-8", data)
	}
}
