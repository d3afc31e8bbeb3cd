package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// release returns the files of a release whose program says its version.
func release(t *testing.T, system string) map[string][]byte {
	t.Helper()
	name, program := "anamnesis-1.2.3-"+system, "#!/bin/sh\necho anamnesis 1.2.3\n"
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: name + "/anamnesis", Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = w.Write([]byte(program))
	}
	if err != nil || w.Close() != nil || z.Close() != nil {
		t.Fatal(err)
	}
	other := "anamnesis-1.2.3-plan9-amd64.tar.gz"
	return map[string][]byte{name + ".tar.gz": archive.Bytes(), other: nil,
		"SHA256SUMS": fmt.Appendf(nil, "%064d  %s\n%x  %s.tar.gz\n", 0, other, sha256.Sum256(archive.Bytes()), name)}
}

// TestInstallScript: install.sh installs what a server has, if it is what the checksums say. Otherwise it says why, and
// the program that was there stays.
func TestInstallScript(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatal("there is no released program for " + runtime.GOARCH)
		}
		t.Skip("NOT RUN: there is no released program for " + runtime.GOARCH)
	}
	system := runtime.GOOS + "-" + runtime.GOARCH
	archive := "anamnesis-1.2.3-" + system + ".tar.gz"
	for name, tt := range map[string]struct {
		change func(files map[string][]byte, bin string)
		uname  string // a program in the place of uname
		url    string
		want   string // what it prints
	}{
		"installs": {want: "installed anamnesis 1.2.3 as "},
		"wrong checksum": {change: func(files map[string][]byte, _ string) {
			files["SHA256SUMS"] = fmt.Appendf(nil, "%064d  %s\n", 1, archive)
		}, want: "is not the file that SHA256SUMS names"},
		"cut file": {change: func(files map[string][]byte, _ string) { files[archive] = files[archive][:50] },
			want: "is not the file that SHA256SUMS names: it was cut or changed"},
		"cut connection": {change: func(files map[string][]byte, _ string) { files["cut"] = nil }, want: "cannot be read whole: nothing was installed"},
		"no such file":   {change: func(files map[string][]byte, _ string) { delete(files, archive) }, want: "cannot be read whole"},
		"no server":      {url: "http://127.0.0.1:1", want: "cannot read http://127.0.0.1:1/SHA256SUMS: nothing was installed"},
		"no address":     {url: "-", want: "set ANAMNESIS_URL"},
		"unknown system": {uname: "case $1 in -s) echo FreeBSD;; *) echo x86_64;; esac", want: "there is no program for FreeBSD on x86_64: with Go, "},
		"unknown machine": {uname: "case $1 in -s) echo Linux;; *) echo riscv64;; esac",
			want: "there is no program for Linux on riscv64"},
		"no program for it": {change: func(files map[string][]byte, _ string) { files["SHA256SUMS"] = files["SHA256SUMS"][:64+2+35] },
			want: "has no program for " + system},
		"a file in the way": {change: func(_ map[string][]byte, bin string) {
			if err := os.RemoveAll(bin); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(bin, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, want: "cannot write to "},
		"no permission": {change: func(_ map[string][]byte, bin string) { // root may not write there, either
			if err := errors.Join(os.RemoveAll(bin), os.Symlink("/proc", bin)); err != nil {
				t.Fatal(err)
			}
		}, want: "cannot write to "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			bin, files := filepath.Join(dir, "bin"), release(t, system)
			if err := os.Mkdir(bin, 0o755); err != nil {
				t.Fatal(err)
			}
			old := filepath.Join(bin, "anamnesis")
			if err := os.WriteFile(old, []byte("old"), 0o755); err != nil {
				t.Fatal(err)
			}
			if tt.change != nil {
				tt.change(files, bin)
			}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				data, has := files[strings.TrimPrefix(r.URL.Path, "/")]
				if !has {
					http.NotFound(w, r)
					return
				}
				if _, cut := files["cut"]; cut && strings.HasSuffix(r.URL.Path, ".gz") {
					w.Header().Set("Content-Length", fmt.Sprint(len(data)))
					data = data[:50]
				}
				if _, err := w.Write(data); err != nil {
					t.Error(err)
				}
			}))
			defer s.Close()
			path := os.Getenv("PATH")
			if tt.uname != "" {
				path = dir + ":" + path
				if err := os.WriteFile(filepath.Join(dir, "uname"), []byte("#!/bin/sh\n"+tt.uname+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "sh")
			script, err := os.Open("../../.ci/install.sh") // as it comes out of curl
			if err != nil {
				t.Fatal(err)
			}
			defer script.Close()
			cmd.Stdin = script
			tmp := filepath.Join(dir, "tmp")
			if err := os.Mkdir(tmp, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd.Env = []string{
				"HOME=" + dir, "PATH=" + path, "ANAMNESIS_BIN=" + bin, "TMPDIR=" + tmp,
				"ANAMNESIS_URL=" + strings.Trim(cmp.Or(tt.url, s.URL), "-"),
			}
			out, err := cmd.CombinedOutput()
			good := name == "installs"
			if (err == nil) != good || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v: %s", err, out)
			}
			if data, _ := os.ReadFile(old); name != "a file in the way" && name != "no permission" &&
				(string(data) == "old") == good {
				t.Errorf("the program is %q", data)
			}
			for _, dir := range []string{bin, tmp} {
				if left, _ := filepath.Glob(filepath.Join(dir, ".*[a-zA-Z]*")); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
			}
			if left, _ := os.ReadDir(tmp); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if good && !strings.Contains(string(out), "is not in your PATH; ") {
				t.Errorf("it does not say how to find it: %s", out)
			}
		})
	}
}
