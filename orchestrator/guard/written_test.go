package guard

import "testing"

// TestWrittenHas: a path that ends in a slash stands for everything beneath it, "/" for the world.
func TestWrittenHas(t *testing.T) {
	w := Written{"a": true, "d/": true, "e/f/": true}
	for path, want := range map[string]bool{"a": true, "a/": true, "a/b": false, "b": false, "d": true, "d/": true, "d/x/y": true, "dx": false, "e": false, "e/f/g": true, "e/g": false} {
		if got := w.Has(path); got != want {
			t.Errorf("Has(%q) = %v", path, got)
		}
	}
	if !(Written{"/": true}).Has("any/file") {
		t.Error("the whole world does not have a file")
	}
}
