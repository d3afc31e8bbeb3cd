package term

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFolded: in a long output of a failed command the line that says why is shown, wherever it stands, and the last
// lines are. The outputs and the marked lines are those of package failure.
func TestFolded(t *testing.T) {
	data, err := os.ReadFile("../../../anamnesis/failure/testdata/outputs.txt")
	if err != nil {
		t.Fatal(err)
	}
	var noise strings.Builder
	for i := range 40 {
		fmt.Fprintf(&noise, "=== RUN   TestPass%d\n--- PASS: TestPass%d (0.00s)\n", i, i)
	}
	seen, all := 0, 0
	for _, section := range strings.Split(string(data), "\n-- ")[1:] {
		name, text, _ := strings.Cut(section, " --\n")
		command := ""
		if rest, ok := strings.CutPrefix(text, "$ "); ok {
			command, text, _ = strings.Cut(rest, "\n")
		}
		_, telling, ok := strings.Cut(text, "»")
		if !ok {
			continue
		}
		telling, _, _ = strings.Cut(telling, "\n")
		text = noise.String() + strings.ReplaceAll(text, "»", "") + "\n" + noise.String() + "1 failed\n"
		lines := Folded(command, text, 1, 0, ": whole")
		if len(lines) > 16 {
			t.Errorf("%s: %d lines", name, len(lines))
		}
		all++
		shown := strings.Join(lines, "\n")
		if strings.Contains(shown, strings.ReplaceAll(Clean(telling), "\t", "    ")) {
			seen++
		} else {
			t.Logf("%s: %q is not shown:\n%s", name, telling, shown)
		}
		if !strings.HasSuffix(shown, "1 failed") || !strings.Contains(shown, "in all: whole") {
			t.Errorf("%s: shown as\n%s", name, shown)
		}
	}
	if seen*10 < all*9 {
		t.Errorf("of %d outputs the telling line is shown in %d, want nine of ten", all, seen)
	}
}
