package redact

import (
	"fmt"
	"strings"
	"testing"
)

// TestKnownLines: of a value with several lines each is found by itself, with
// numbers before it and any end; the text keeps its lines.
func TestKnownLines(t *testing.T) {
	value := pem() + "some words: 42\nx7\n"
	r := New(testKey(), []Secret{{"ssh-key", value}})
	body := strings.Split(strings.TrimSpace(value), "\n")
	for name, frame := range map[string]func(string) string{
		"as it is":      func(s string) string { return "<" + s + ">" },
		"CRLF":          func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"indented":      func(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") },
		"quoted":        func(s string) string { return "> " + strings.ReplaceAll(s, "\n", "\n> ") },
		"without begin": func(s string) string { return strings.SplitN(s, "\n", 2)[1] },
		"JSON":          func(s string) string { return jsonEscape(s) },
		"numbered": func(s string) string {
			var b strings.Builder
			for i, line := range strings.Split(s, "\n") {
				fmt.Fprintf(&b, "%6d\t%s\n", i+1, line)
			}
			return b.String()
		},
	} {
		in := frame(value)
		out, found := r.Text(in)
		for _, line := range body {
			if len(line) >= MinKnownBytes && !strings.HasPrefix(line, "-----") && strings.Contains(out, line) {
				t.Errorf("%s: %q is left:\n%s", name, line, out)
			}
		}
		if strings.Count(in, "\n") != strings.Count(out, "\n") {
			t.Errorf("%s: the lines changed:\n%s", name, out)
		}
		if back := restore(out, found); back != in {
			t.Errorf("%s: not restored:\n%s", name, back)
		}
	}
	if out, _ := r.Text(value); strings.Contains(out, "x7") {
		t.Errorf("a short line is left: %q", out)
	}
	// A line that says nothing is none.
	r = New(testKey(), []Secret{{"k", "Zy9xWv6u\nconfiguration\n/usr/bin/env"}})
	if out, _ := r.Text("the configuration of /usr/bin/env"); HasMarker(out) {
		t.Errorf("words: %q", out)
	}
}

// TestKnownInURLs: whoever escapes it, and in whatever case.
func TestKnownInURLs(t *testing.T) {
	value := "p/w+x(y)!z=%2Fé"
	r := New(testKey(), []Secret{{"k", value}})
	for _, in := range []string{
		"p%2Fw%2Bx%28y%29%21z%3D%252F%C3%A9", "p%2fw%2bx%28y%29%21z%3d%252F%c3%a9", "p%2Fw%2bx%28y%29%21z%3d%252F%C3%a9",
		"p%2Fw%2Bx(y)!z%3D%252F%C3%A9", "p/w%2Bx%28y%29%21z%3D%252F%C3%A9",
		"p%2525252Fw%2525252Bx%25252528y%25252529%25252521z%2525253D%252525252F%252525C3%252525A9",
	} {
		if out, found := r.Text("?q=" + in + "&x"); len(found) != 1 || found[0].Bytes != in ||
			found[0].Marker != markerOf(t, r, value) {
			t.Errorf("%s: %q", in, out)
		}
	}
	for _, in := range []string{"P%2Fw%2Bx%28y%29%21z%3D%252F%C3%A9", "P/w+x(y)!z=%2Fé"} { // elsewhere case counts
		if out, found := r.Text(in); len(found) != 0 {
			t.Errorf("%s: %q", in, out)
		}
	}
}

// TestKnownNumber: a known value may stand as a number; a caller's own numbers
// stay what they are.
func TestKnownNumber(t *testing.T) {
	r := New(testKey(), []Secret{{"pin", "4711081512"}})
	in := `{"pin":4711081512,"n":[4711081512, 47110815120],"args":"{\"pin\": 4711081512}"}`
	out, changed, err := r.JSON([]byte(in), &JSONOptions{Nested: []string{"args"}})
	mark := markerOf(t, r, "4711081512")
	want := `{"pin":"` + mark + `","n":["` + mark + `", 47110815120],"args":"{\"pin\": \"` + mark + `\"}"}`
	if err != nil || !changed || string(out) != want {
		t.Errorf("got  %s, %v\nwant %s", out, err, want)
	}
	out, _, err = r.JSON([]byte(in), &JSONOptions{Nested: []string{"args"}, OwnKeys: true})
	want = `{"pin":4711081512,"n":[4711081512, 47110815120],"args":"{\"pin\": \"` + mark + `\"}"}`
	if err != nil || string(out) != want {
		t.Errorf("own numbers: %s, %v", out, err)
	}
}
