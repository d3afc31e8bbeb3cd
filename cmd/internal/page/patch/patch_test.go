package patch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestReadDiff(t *testing.T) {
	d := Read("diff --git a/x b/x\nindex 0000..1111\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new \u202e\n same\ndiff --git a/y b/y\n--- a/y\n")
	var got []string
	for _, l := range d.Lines {
		got = append(got, fmt.Sprintf("%s|%s", l.Kind, l.Text))
	}
	want := `at|diff --git a/x b/x
at|--- a/x
at|+++ b/x
at|@@ -1 +1 @@
del|-old
ins|+new \u202e
| same
at|diff --git a/y b/y
at|--- a/y`
	if strings.Join(got, "\n") != want || d.Cut {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if d := Read(strings.Repeat("+\n", MaxBytes)); !d.Cut || len(d.Lines) > MaxBytes/2 {
		t.Error("a long diff is not cut")
	}
}

// TestLineLinks: a line leads to what wrote it, by its file and its number, in the old file if it was deleted.
func TestLineLinks(t *testing.T) {
	d := Read("diff --git a/x b/y\n--- a/x\n+++ b/y\n@@ -8,2 +9,3 @@ func\n same\n-old\n+new\n+more\ndiff --git \"a/\\303\\244 b\" \"b/\\303\\244 b\"\n--- \"a/\\303\\244 b\"\n+++ \"b/\\303\\244 b\"\n@@ -1 +1 @@\n-one\n+two\n\\ No newline at end of file\n")
	var got []string
	for _, l := range d.Lines {
		if l.No > 0 {
			got = append(got, fmt.Sprint(l.Path, ":", l.No, l.Kind))
		}
	}
	if want := "y:9 x:9del y:10ins y:11ins ä b:1del ä b:1ins"; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if strings.Contains(string(d.HTML()), "<a") {
		t.Error("lines lead somewhere without an address")
	}
	d.Why = "/why"
	if want := `<del><a href="/why?kind=del&amp;line=9&amp;path=x">-old</a></del>`; !strings.Contains(string(d.HTML()), want) {
		t.Errorf("got %s\nwant %s", d.HTML(), want)
	}
}

func TestBoundedBuffer(t *testing.T) {
	var b Buffer
	for {
		if _, err := fmt.Fprint(&b, strings.Repeat("x", 1000)); err != nil {
			if !errors.Is(err, ErrFull) || b.Len() != MaxBytes+1 {
				t.Errorf("%d bytes, %v", b.Len(), err)
			}
			return
		}
	}
}
