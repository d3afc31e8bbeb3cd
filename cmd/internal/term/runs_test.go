package term

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestRuns: of a command line the programs and the files that it writes are named, once each, if it can be read.
func TestRuns(t *testing.T) {
	for line, want := range map[string]string{
		"go test ./... && go vet ./...": "runs go", "ls | grep x": "runs ls, grep", "ls >a 2>a </b": "runs ls · writes a", "ls >a >>b": "runs ls · writes a, b", ">a": "writes a",
		"": "cannot be read as a command line", "'": "cannot be read with certainty: it is not a shell command",
	} {
		if got := runs(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestFoldedAround: two lines before the one that says why, five after it and the last three are shown.
func TestFoldedAround(t *testing.T) {
	var in []string
	for i := range 60 {
		in = append(in, fmt.Sprintf("working on part %c%c", 'a'+i/26, 'a'+i%26))
	}
	in[20] = "main.go:7:2: undefined: x"
	want := slices.Concat(in[:1], []string{"… 17 lines"}, in[18:26], []string{"… 31 lines"}, in[57:])
	got := Folded("go build ./...", strings.Join(in, "\n"), 1, 0, "")
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], ", ")
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("shown as\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
