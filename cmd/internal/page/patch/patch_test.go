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
