package file_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
)

// plain is an empty world.
func plain(t testing.TB) *tool.Env {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &tool.Env{Call: "c", Root: root, Dir: dir}
}

func call(t testing.TB, env *tool.Env, tl tool.Tool, args map[string]any) tool.Result {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tl.Call(t.Context(), env, data)
	if err != nil {
		t.Fatalf("%s %s: %v", tl.Spec().Name, data, err)
	}
	return r
}

// noTemps checks that no half-written file was left behind.
func noTemps(t *testing.T, top string) {
	t.Helper()
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(d.Name(), "anamnesis-tmp") {
			t.Errorf("left behind: %s", p)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func put(t testing.TB, env *tool.Env, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(env.Dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, env *tool.Env, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(env.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "row %d\n", i+1)
	}
	return b.String()
}

func TestReadFile(t *testing.T) {
	env := plain(t)
	put(t, env, "ten", numbered(10))
	put(t, env, "long", numbered(2500))
	put(t, env, "wide", "short\n"+strings.Repeat("ä", 5000)+"\nend")
	put(t, env, "huge", strings.Repeat(strings.Repeat("x", 1500)+"\n", 100))
	put(t, env, "crlf", "a\r\nb\r\n")
	put(t, env, "latin", "caf\xe9\n")
	put(t, env, "empty", "")
	put(t, env, "newline", "\n")
	put(t, env, "bin", "ELF\x00\x01")
	put(t, env, "pdf", "%PDF-1.7 text")
	put(t, env, "png", "\x89PNG\r\n\x1a\n\x00\x00\x00")
	put(t, env, "text.png", "no image\n")
	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	put(t, env, "dot.png", dot.String())
	tests := []struct {
		name  string
		args  map[string]any
		first string // how the text begins
		last  string // its last line
		err   bool
	}{
		{"whole", map[string]any{"path": "ten"}, "     1\trow 1\n     2\trow 2\n", "[lines 1-10; total_lines: 10; has_more: false]", false},
		{"window", map[string]any{"path": "ten", "line_offset": 4, "n_lines": 2}, "     4\trow 4\n     5\trow 5\n[", "[lines 4-5; total_lines: 10; has_more: true; go on with line_offset 6]", false},
		{"aliases", map[string]any{"path": "ten", "offset": 4, "limit": 2}, "     4\trow 4\n     5\trow 5\n[", "[lines 4-5; total_lines: 10; has_more: true; go on with line_offset 6]", false},
		{"from the end", map[string]any{"path": "ten", "line_offset": -2}, "     9\trow 9\n    10\trow 10\n[", "[lines 9-10; total_lines: 10; has_more: false]", false},
		{"far from the end", map[string]any{"path": "ten", "line_offset": -99, "n_lines": 1}, "     1\trow 1\n[", "[lines 1-1; total_lines: 10; has_more: true; go on with line_offset 2]", false},
		{"zero is the first", map[string]any{"path": "ten", "line_offset": 0, "n_lines": 1}, "     1\trow 1\n[", "[lines 1-1; total_lines: 10; has_more: true; go on with line_offset 2]", false},
		{"beyond the end", map[string]any{"path": "ten", "line_offset": 11}, "[", "[there is no line 11; total_lines: 10; has_more: false]", false},
		{"most lines", map[string]any{"path": "long", "n_lines": 9999}, "     1\trow 1\n", "[lines 1-1000; total_lines: 2500; has_more: true; go on with line_offset 1001]", false},
		{"most bytes", map[string]any{"path": "huge"}, "     1\txxx", "[lines 1-67; total_lines: 100; has_more: true; go on with line_offset 68 (100 KB shown, the most at once)]", false},
		{"wide line", map[string]any{"path": "wide"}, "     1\tshort\n     2\tää", "[lines 1-3; total_lines: 3; has_more: false; lines cut at 2000 characters: [2]; no newline at the end of the file]", false},
		{"CRLF", map[string]any{"path": "crlf"}, "     1\ta\n     2\tb\n", "[lines 1-2; total_lines: 2; has_more: false; lines end in CRLF]", false},
		{"not UTF-8", map[string]any{"path": "latin"}, "     1\tcaf\uFFFD\n", "[lines 1-1; total_lines: 1; has_more: false; some bytes are not UTF-8, shown as \uFFFD]", false},
		{"empty", map[string]any{"path": "empty"}, "[", "[the file is empty; total_lines: 0; has_more: false]", false},
		{"one newline", map[string]any{"path": "newline"}, "     1\t\n[", "[lines 1-1; total_lines: 1; has_more: false]", false},
		{"binary", map[string]any{"path": "bin"}, "ReadFile: bin: is a binary file", "xxd", true},
		{"PDF", map[string]any{"path": "pdf"}, "ReadFile: pdf: is a binary file (application/pdf", "", true},
		{"a damaged PNG", map[string]any{"path": "png"}, "ReadFile: png: is an image that cannot be shown: it is damaged: unexpected EOF (11 bytes).", "", true},
		{"a text called PNG", map[string]any{"path": "text.png"}, "     1\tno image\n", "[lines 1-1; total_lines: 1; has_more: false]", false},
		{"a PNG", map[string]any{"path": "dot.png"}, "[image 1: dot.png: image/png, 3x2 pixels, 75 bytes]", "[image 1: dot.png: image/png, 3x2 pixels, 75 bytes]", false},
	}
	for _, tt := range tests {
		r := call(t, env, file.ReadFile(nil), tt.args)
		end := r.Text[strings.LastIndexByte(r.Text, '\n')+1:]
		if r.IsError != tt.err || !strings.HasPrefix(r.Text, tt.first) || !tt.err && end != tt.last {
			t.Errorf("%s: %v\n%.300s\n…%s\nwant %q … %q", tt.name, r.IsError, r.Text, end, tt.first, tt.last)
		}
		if len(r.Text) > file.MaxBytes+1000 {
			t.Errorf("%s: %d bytes", tt.name, len(r.Text))
		}
	}
	if r := call(t, env, file.ReadFile(nil), map[string]any{"path": "wide"}); r.Cut != 6000 {
		t.Errorf("cut = %d, want 6000", r.Cut)
	}
}

func TestReadFileRefusesHugeFiles(t *testing.T) {
	env := plain(t)
	put(t, env, "sparse", "x")
	if err := os.Truncate(filepath.Join(env.Dir, "sparse"), file.MaxReadBytes+1); err != nil {
		t.Fatal(err)
	}
	r := call(t, env, file.ReadFile(nil), map[string]any{"path": "sparse"})
	if !r.IsError || !strings.Contains(r.Text, "sed -n") {
		t.Errorf("result = %+v", r)
	}
}

func TestWriteFile(t *testing.T) {
	env := plain(t)
	w := file.WriteFile()
	steps := []struct {
		args map[string]any
		want string // in the text
		file string // its content afterwards
	}{
		{map[string]any{"path": "a/b/c.txt", "content": "one\n"}, "created a/b/c.txt; bytes_written: 4; existed: false; size: 4", "one\n"},
		{map[string]any{"path": "a/b/c.txt", "content": "two\n", "mode": "append"}, "appended to a/b/c.txt; bytes_written: 4; existed: true; size: 8", "one\ntwo\n"},
		{map[string]any{"path": "a/b/c.txt", "content": "ü", "mode": "overwrite"}, "replaced a/b/c.txt; bytes_written: 2; existed: true; size: 2", "ü"},
		{map[string]any{"path": "a/b/c.txt", "content": ""}, "bytes_written: 0; existed: true; size: 0", ""},
	}
	for _, s := range steps {
		r := call(t, env, w, s.args)
		if r.IsError || !strings.Contains(r.Text, s.want) || get(t, env, "a/b/c.txt") != s.file {
			t.Errorf("%v: %+v; file %q, want %q", s.args, r, get(t, env, "a/b/c.txt"), s.file)
		}
	}
	if r := call(t, env, w, map[string]any{"path": "new", "content": "x", "mode": "append"}); !strings.Contains(r.Text, "created new") {
		t.Errorf("append to nothing: %s", r.Text)
	}
	noTemps(t, env.Dir)
}

func TestWriteKeepsModeAndLinks(t *testing.T) {
	env := plain(t)
	put(t, env, "run.sh", "#!/bin/sh\n")
	p := filepath.Join(env.Dir, "run.sh")
	if err := os.Chmod(p, 0o751); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(p, filepath.Join(env.Dir, "other")); err != nil {
		t.Fatal(err)
	}
	r := call(t, env, file.WriteFile(), map[string]any{"path": "run.sh", "content": "#!/bin/bash\n"})
	info, err := os.Stat(p)
	if err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode = %v, %v; want 0751", info.Mode(), err)
	}
	if get(t, env, "other") != "#!/bin/sh\n" || !strings.Contains(r.Text, "2 names") {
		t.Errorf("the other name has %q; result %s", get(t, env, "other"), r.Text)
	}
	if err := os.Chmod(p, 0o444); err != nil {
		t.Fatal(err)
	}
	if r := call(t, env, file.WriteFile(), map[string]any{"path": "run.sh", "content": "x"}); !r.IsError ||
		!strings.Contains(r.Text, "read-only") {
		t.Errorf("a read-only file: %+v", r)
	}
}

// A write that cannot be finished changes nothing and leaves nothing behind.
func TestWriteFailureLeavesNothing(t *testing.T) {
	env := plain(t)
	name := strings.Repeat("n", 250) // the file's name fits, a longer one does not
	put(t, env, name, "old")
	put(t, env, "dir-is-file", "x")
	for _, path := range []string{"dir-is-file/child", strings.Repeat("m", 256)} {
		if r := call(t, env, file.WriteFile(), map[string]any{"path": path, "content": "x"}); !r.IsError {
			t.Errorf("%.20s…: %+v", path, r)
		}
	}
	if r := call(t, env, file.WriteFile(), map[string]any{"path": name, "content": "new"}); r.IsError ||
		get(t, env, name) != "new" {
		t.Errorf("a long name: %+v", r)
	}
	noTemps(t, env.Dir)
}

func TestStrReplaceFile(t *testing.T) {
	edits := func(e ...any) map[string]any { return map[string]any{"edits": e} }
	one := func(old, new string) map[string]any { return map[string]any{"old": old, "new": new} }
	all := func(old, new string) map[string]any {
		return map[string]any{"old": old, "new": new, "replace_all": true}
	}
	tests := []struct {
		name, file string
		args       map[string]any
		want       string // the file afterwards
		text       string // in the result; an error if the file stays
	}{
		{"single", "a b c", one("b", "x"), "a x c", "replacements: 1"},
		{"delete", "a b c", one(" b", ""), "a c", "replacements: 1"},
		{"all", "a a a", all("a", "bb"), "bb bb bb", "replacements: 3"},
		{"edits in order", "a b", edits(one("a", "x"), one("x b", "y")), "y", "edits: 2; replacements: 2"},
		{"CRLF survives", "a\r\nb\r\n", one("a", "x"), "x\r\nb\r\n", "replacements: 1"},
		{"CRLF matched", "a\r\nb\r\n", one("a\r\nb", "x"), "x\r\n", "replacements: 1"},
		{"no final newline survives", "a\nb", one("a", "x"), "x\nb", "replacements: 1"},
		{"other encodings survive", "caf\xe9 a\x80", one(" a", "-b"), "caf\xe9-b\x80", "replacements: 1"},
		{"not unique", "x\na\na a\n", one("a", "b"), "", "occurs 3 times, at lines 2, 3, 3: add text around it"},
		{"not there", "abc", one("d", "x"), "", "does not occur: read the file again"},
		{"LF in a CRLF file", "a\r\nb\r\nc\r\n", one("a\nb\n", "x\ny\n"), "x\r\ny\r\nc\r\n", "replacements: 1"},
		{"lines added to a CRLF file", "a\r\nb\r\n", one("a", "x\ny"), "x\r\ny\r\nb\r\n", "replacements: 1"},
		{"CRLF changed to LF on purpose", "a\r\nb\r\n", one("a\r\nb", "a\nb"), "a\nb\r\n", "replacements: 1"},
		{"CRLF in an LF file", "a\nb\nc\n", one("a\r\nb", "x\r\ny"), "x\ny\nc\n", "replacements: 1"},
		{"mixed, at CRLF", "a\r\nb\r\nc\n", one("a\nb", "x\ny"), "x\r\ny\r\nc\n", "replacements: 1"},
		{"mixed, at LF", "a\nb\nc\r\n", one("a\nb", "x\ny"), "x\ny\nc\r\n", "replacements: 1"},
		{"mixed, at both", "a\nb\na\r\nb\r\n", one("a\nb", "x"), "", "occurs 2 times, at lines 1, 3"},
		{"mixed, across", "a\r\nb\nc\n", one("a\nb\nc", "x"), "", "mixed there (LF and CRLF)"},
		{"white space hint", "x\n\tif  a {\n", one("    if a {\n", "x"), "", "like line 2"},
		{"same", "a", one("a", "a"), "", "the same"},
		{"all or none", "a b", edits(one("a", "x"), one("q", "y")), "", "edit 2 of 2: old does not occur"},
		{"edit, as one", "a b", map[string]any{"edit": one("b", "x")}, "a x", "edits: 1; replacements: 1"},
		{"edit, as one of all", "a a", map[string]any{"edit": all("a", "x")}, "x x", "edits: 1; replacements: 2"},
		{"edit, as a list", "a b", map[string]any{"edit": []any{one("a", "x"), one("b", "y")}}, "x y", "edits: 2; replacements: 2"},
		{"edit not there", "a b", map[string]any{"edit": one("q", "x")}, "", "f: old does not occur"},
		{"edit and edits", "a", map[string]any{"edit": one("a", "b"), "edits": []any{one("a", "b")}}, "", "not both"},
		{"edit and old", "a", map[string]any{"edit": one("a", "b"), "old": "a", "new": "b"}, "", "not both"},
		{"both forms", "a", map[string]any{"old": "a", "new": "b", "edits": []any{one("a", "b")}}, "", "not both"},
		{"neither", "a", map[string]any{}, "", "give old and new"},
		{"half", "a", map[string]any{"old": "a"}, "", "give old and new"},
		{"overlapping", "aaa", one("aa", "b"), "ba", "replacements: 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := plain(t)
			put(t, env, "f", tt.file)
			tt.args["path"] = "f"
			r := call(t, env, file.StrReplaceFile(), tt.args)
			want := tt.want
			if want == "" {
				want = tt.file
			}
			if got := get(t, env, "f"); got != want {
				t.Errorf("file = %q, want %q", got, want)
			}
			if r.IsError != (tt.want == "") || !strings.Contains(r.Text, tt.text) {
				t.Errorf("result = %+v, want %q in it", r, tt.text)
			}
			noTemps(t, env.Dir)
		})
	}
}

// A unique text is replaced and every other byte stays.
func TestStrReplaceProperty(t *testing.T) {
	env := plain(t)
	rapid.Check(t, func(rt *rapid.T) {
		before := rapid.SliceOf(rapid.Byte()).Draw(rt, "before")
		after := rapid.SliceOf(rapid.Byte()).Draw(rt, "after")
		with := rapid.String().Draw(rt, "new")
		const old = "⟦the only one⟧"
		in := bytes.Join([][]byte{before, after}, []byte(old))
		put(t, env, "f", string(in))
		r := call(t, env, file.StrReplaceFile(), map[string]any{"path": "f", "old": old, "new": with})
		want := bytes.Join([][]byte{before, after}, []byte(with))
		if got := get(t, env, "f"); r.IsError || got != string(want) {
			rt.Fatalf("file = %q, want %q; %s", got, want, r.Text)
		}
	})
}

// Readers see the old content or the new, never a part.
func TestWritesAreWhole(t *testing.T) {
	env := plain(t)
	contents := []string{strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<20)}
	put(t, env, "f", contents[0])
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for i := range 30 {
			call(t, env, file.WriteFile(), map[string]any{"path": "f", "content": contents[i%2]})
		}
	})
	for {
		select {
		case <-done:
			wg.Wait()
			return
		default:
			if got := get(t, env, "f"); got != contents[0] && got != contents[1] {
				t.Fatalf("read %d bytes that were never the file", len(got))
			}
		}
	}
}
