package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// buckets returns one of each kind.
func buckets(t *testing.T) map[string]Bucket {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("team"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	env := func(name string) string {
		return map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "us-east-1"}[name]
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	out := make(map[string]Bucket)
	key := bytes.Repeat([]byte("k"), KeyBytes)
	for name, address := range map[string]string{"directory": t.TempDir(), "s3": "s3://team/agents", "s3 without prefix": "s3://team"} {
		for sealed, key := range map[string][]byte{"": nil, ", sealed": key} {
			b, err := Open(address, key, env)
			if err != nil {
				t.Fatal(err)
			}
			out[name+sealed] = b
		}
	}
	return out
}

func TestBucket(t *testing.T) {
	ctx := context.Background()
	for kind, b := range buckets(t) {
		t.Run(kind, func(t *testing.T) {
			if err := b.Create(ctx, "x/"+kind+"/1", []byte("one")); err != nil {
				t.Fatal(err)
			}
			if err := b.Create(ctx, "x/"+kind+"/1", []byte("two")); !errors.Is(err, ErrExists) {
				t.Fatalf("created twice: %v", err)
			}
			if got, err := b.Get(ctx, "x/"+kind+"/1"); err != nil || string(got) != "one" {
				t.Errorf("got %q, %v", got, err)
			}
			if _, err := b.Get(ctx, "x/"+kind+"/0"); !errors.Is(err, ErrAbsent) {
				t.Errorf("an object that is not there: %v", err)
			}
			for _, name := range []string{"3", "2"} {
				if err := b.Put(ctx, "x/"+kind+"/"+name, []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			names, err := b.List(ctx, "x/"+kind+"/", "x/"+kind+"/1")
			if want := []string{"x/" + kind + "/2", "x/" + kind + "/3"}; err != nil || !slices.Equal(names, want) {
				t.Errorf("listed %q, %v", names, err)
			}
			if err := errors.Join(b.Delete(ctx, "x/"+kind+"/2"), b.Delete(ctx, "x/"+kind+"/2")); err != nil {
				t.Errorf("delete: %v", err)
			}
		})
	}
}

// TestRace: of rivals that create one object exactly one succeeds.
func TestRace(t *testing.T) {
	for kind, b := range buckets(t) {
		for round := range 20 {
			var won atomic.Int32
			var group sync.WaitGroup
			for rival := range 8 {
				group.Go(func() {
					err := b.Create(context.Background(), fmt.Sprintf("race %s/%d", kind, round),
						fmt.Append(nil, rival))
					if err == nil {
						won.Add(1)
					} else if !errors.Is(err, ErrExists) {
						t.Errorf("%s: %v", kind, err)
					}
				})
			}
			group.Wait()
			if won.Load() != 1 {
				t.Errorf("%s: %d rivals won", kind, won.Load())
			}
		}
	}
}

func TestSealed(t *testing.T) {
	dir := t.TempDir()
	key := bytes.Repeat([]byte("k"), KeyBytes)
	b, err := Open(dir, key, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := b.Put(ctx, "a/secret", []byte("hunter2")); err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile(filepath.Join(dir, "a", "secret"))
	if err != nil || bytes.Contains(stored, []byte("hunter2")) || !IsSealed(stored) {
		t.Errorf("stored: %q, %v", stored, err)
	}
	damaged := bytes.Clone(stored)
	damaged[len(damaged)-1] ^= 1
	for name, data := range map[string][]byte{"a/moved": stored, "a/damaged": damaged, "a/plain": []byte("x"), "a/cut": stored[:len(sealedLead)+3]} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Get(ctx, name); !errors.Is(err, ErrKey) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	other, err := Open(dir, bytes.Repeat([]byte("o"), KeyBytes), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Get(ctx, "a/secret"); !errors.Is(err, ErrKey) {
		t.Errorf("another key: %v", err)
	}
}

// TestRefused: what does not pass by itself is told from what does.
func TestRefused(t *testing.T) {
	ctx := context.Background()
	absent, err := Open(filepath.Join(t.TempDir(), "unmounted"), nil, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	_, list := absent.List(ctx, "a/", "")
	_, get := absent.Get(ctx, "a")
	for what, err := range map[string]error{"create": absent.Create(ctx, "a", nil), "list": list, "get": get} {
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s in a directory that is not there: %v", what, err)
		}
	}
	for _, address := range []string{"", "s3://", "ftp://host/x", "s3://user:secret@bucket", "s3://bucket?x=secret"} {
		if _, err := Open(address, nil, os.Getenv); err == nil ||
			strings.Contains(err.Error(), "secret") && !strings.Contains(err.Error(), "AWS_SECRET") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := ParseKey("short"); err == nil {
		t.Error("a short key")
	}
}

// TestUnmounted: of a directory in whose place is an empty one nothing is made anew, and nothing is said not to exist.
func TestUnmounted(t *testing.T) {
	ctx, root := context.Background(), filepath.Join(t.TempDir(), "nb")
	b, err := Open(root, nil, os.Getenv)
	if err := errors.Join(err, os.Mkdir(root, 0o700), b.Create(ctx, "tasks/t/log/1", []byte("one")), os.Rename(root, root+".real"), os.Mkdir(root, 0o700)); err != nil {
		t.Fatal(err)
	}
	_, list := b.List(ctx, "tasks/t/log/", "")
	_, get := b.Get(ctx, "tasks/t/log/1")
	for what, err := range map[string]error{
		"create": b.Create(ctx, "tasks/t/log/2", nil), "put": b.Put(ctx, "tasks/t/alive", nil), "a part": b.Create(ctx, "tasks/t/parts/1", nil), "list": list, "get": get,
	} {
		if !errors.Is(err, ErrFails) || errors.Is(err, ErrAbsent) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if made, err := os.ReadDir(root); err != nil || len(made) > 0 {
		t.Errorf("made: %v, %v", made, err)
	}
	if err := errors.Join(os.Remove(root), os.Rename(root+".real", root), b.Create(ctx, "tasks/t/log/2", nil)); err != nil {
		t.Errorf("mounted again: %v", err)
	}
}
