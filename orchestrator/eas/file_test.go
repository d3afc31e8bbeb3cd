package eas

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/anamnesis/attention"
)

// TestPutRow: the first row makes the user's file and the next one keeps it; a link keeps its
// place; a file that is no table is refused and stays as it is.
func TestPutRow(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "eas.yaml")
	if err := os.Symlink("real.yaml", link); err != nil {
		t.Fatal(err)
	}
	row := attention.Row{
		Window: 32000, EAS: 8000, Encoding: "o200k_base", Confidence: attention.ConfidenceLow, Source: "a test",
		Updated: "2026-11-21", By: "user",
	}
	if err := os.WriteFile(real, []byte("# mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row.Pattern = range []string{"m", "n"} {
		if err := PutRow(link, row); err != nil {
			t.Fatal(err)
		}
	}
	if to, err := os.Readlink(link); err != nil || to != "real.yaml" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	o, err := attention.ReadOverlay(real)
	if err != nil || string(o.Data[:7]) != "# mine\n" {
		t.Fatalf("%q, %v", o.Data, err)
	}
	for _, pattern := range []string{`"m"`, `"n"`} {
		if !strings.Contains(string(o.Data), "pattern: "+pattern) {
			t.Errorf("no row for %s in\n%s", pattern, o.Data)
		}
	}
	if err := os.WriteFile(real, []byte("- x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := PutRow(link, row); err == nil {
		t.Error("a row was put into a list")
	}
	if data, err := os.ReadFile(real); err != nil || string(data) != "- x\n" {
		t.Errorf("the refused file says %q, %v", data, err)
	}
}
