package mention

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAttach(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewRGBA(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	dot := buf.Bytes()
	for path, data := range map[string][]byte{
		filepath.Join(dir, "a.png"): dot, filepath.Join(dir, "two words.PNG"): dot, filepath.Join(home, "h.png"): dot,
		filepath.Join(dir, "text.png"): []byte("words"), filepath.Join(dir, "half.png"): dot[:40],
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.png"), 0o700); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	size := fmt.Sprintf(": image/png, 3x2 pixels, %d bytes]", len(dot))
	for text, want := range map[string][]string{
		"see " + at("a.png") + ", please": {"[image 1: " + at("a.png") + size},
		"@a.png? and (@a.png)":            {"[image 1: " + at("a.png") + size},
		"'" + at("two words.PNG") + "'":   {"[image 1: " + at("two words.PNG") + size},
		`x "` + at("two words.PNG") +
			`" ~/h.png`: {"[image 1: " + at("two words.PNG") + size, "[image 2: " + home + "/h.png" + size},
		strings.ReplaceAll(at("two words.PNG"), " ", `\ `): {"[image 1: " + at("two words.PNG") + size},
		"file://" + at("a.png") + " " + at("a.png"):        {"[image 1: " + at("a.png") + size},
		"is @text.png one":          {"[image " + at("text.png") + ": not attached: it is not a PNG, JPEG, WebP or GIF image]"},
		"@half.png @a.png":          {"[image " + at("half.png") + ": not attached: it is damaged: unexpected EOF]", "[image 1: " + at("a.png") + size},
		"@folder.png":               nil,
		"make a.png":                nil,
		"https://example.com/a.png": nil,
		"write " + at("new.png"):    nil,
		at("a.png") + ".bak":        nil,
	} {
		got, parts := Attach(dir, text)
		lines := Attached(got)
		if !slices.Equal(lines, want) || !strings.HasPrefix(got, text) || want == nil && got != text {
			t.Errorf("%s: %q, want %q", text, lines, want)
		}
		if n := strings.Count(got, size); len(parts) != n {
			t.Errorf("%s: %d parts, want %d", text, len(parts), n)
		}
	}
	var many []string
	for i := range maxImages + 1 {
		if err := os.WriteFile(at(fmt.Sprintf("%d.png", i)), dot, 0o600); err != nil {
			t.Fatal(err)
		}
		many = append(many, fmt.Sprintf("@%d.png", i))
	}
	got, parts := Attach(dir, strings.Join(many, " "))
	if len(parts) != maxImages || !strings.HasSuffix(got, ": not attached: at most 8 are in one message]") {
		t.Errorf("%d parts of %d: %s", len(parts), len(many), got)
	}
}
