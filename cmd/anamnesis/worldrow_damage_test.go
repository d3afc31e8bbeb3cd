//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/cmd/internal/exit"
	"anamnesis/worldstate"
	"anamnesis/worldstate/worldtest"
)

// packs lists the store's packs, the oldest first.
func (w *rowWorld) packs() []string {
	w.Helper()
	list, err := filepath.Glob(filepath.Join(w.store, "objects", "pack", "*.pack"))
	if err != nil || len(list) == 0 {
		w.Fatalf("no packs: %v", err)
	}
	age := func(p string) int64 {
		info, err := os.Stat(p)
		w.must(err)
		return info.ModTime().UnixNano()
	}
	for i := range list { // few: sorted by hand
		for j := i; j > 0 && age(list[j]) < age(list[j-1]); j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return list
}

// spoil changes a file of the store.
func (w *rowWorld) spoil(path string, how func([]byte) []byte) {
	w.Helper()
	data, err := os.ReadFile(path)
	w.must(err)
	w.must(os.Remove(path)) // as a disk does: whoever holds it open keeps the old one
	w.must(os.WriteFile(path, how(data), 0o600))
}

// damages are the ways a store loses something. each says how the first pack
// suffers.
var damages = map[string]func(w *rowWorld, pack string){
	"pack gone": func(w *rowWorld, pack string) { w.must(os.Remove(pack)) },
	"pack and index gone": func(w *rowWorld, pack string) {
		w.must(os.Remove(pack))
		w.must(os.Remove(strings.TrimSuffix(pack, ".pack") + ".idx"))
	},
	"pack cut short": func(w *rowWorld, pack string) {
		w.spoil(pack, func(b []byte) []byte { return b[:len(b)/2] })
	},
	"pack empty": func(w *rowWorld, pack string) { w.spoil(pack, func([]byte) []byte { return nil }) },
	"index cut short": func(w *rowWorld, pack string) {
		w.spoil(strings.TrimSuffix(pack, ".pack")+".idx", func(b []byte) []byte { return b[:len(b)-30] })
	},
	"index rotten": func(w *rowWorld, pack string) {
		w.spoil(strings.TrimSuffix(pack, ".pack")+".idx", func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	},
	inTheMiddle: func(w *rowWorld, pack string) {
		w.spoil(pack, func(b []byte) []byte { copy(b[len(b)/4:len(b)/2], make([]byte, len(b))); return b })
	},
}

// inTheMiddle is the damage that only reading everything finds: verify does,
// and the save after it.
const inTheMiddle = "zeros in the middle"

// TestRow11Damage: whatever is missing or rotten, a restore that needs it is
// refused before the first byte moves and names it; verify finds it; and a
// save never claims to hold what it does not.
func TestRow11Damage(t *testing.T) {
	t.Parallel()
	heavy(t)
	for name, damage := range damages {
		for layout, files := range map[string][]string{"flat": {"a", "b", "c"}, "deep": {"a", "b", "d/e"}} {
			t.Run(name+"/"+layout, func(t *testing.T) {
				w := newRowWorld(t)
				w.face = programFace{t: t, dir: w.dir, store: w.store}
				for _, p := range files {
					w.write(p, strings.Repeat("the first "+p+"\n", 300))
				}
				first := w.saved()
				w.outlast("b")
				w.write("a", "2")
				w.saved() // and with it the others' stamps are trusted
				damage(w, w.packs()[0])
				before := w.look()
				_, perr := w.plan(first.ID, worldstate.PlanOptions{})
				w.refused(perr, exit.Corrupt, "missing or damaged")
				_, rerr := w.restore(first.ID, noOptions)
				w.refused(rerr, exit.Corrupt, "missing or damaged")
				worldtest.Untouched(t, before, w.look(), nil, "refused restores")
				if name == inTheMiddle {
					w.damageFound()
				}
				w.honestSave()
				w.damageFound()
			})
		}
	}
}

// stampAge is when a file is old enough for its stamp to be trusted.
const stampAge = 150 * time.Millisecond

// outlast waits until a file's stamp is old enough to be trusted.
func (w *rowWorld) outlast(rel string) {
	w.Helper()
	var st unix.Stat_t
	w.must(unix.Lstat(w.path(rel), &st))
	<-time.After(time.Until(time.Unix(st.Ctim.Unix()).Add(stampAge)))
}

func (w *rowWorld) damageFound() {
	w.Helper()
	if r, err := w.verify(); err == nil || exit.Code(err) != exit.Corrupt || r.OK || len(r.Problems) == 0 {
		w.Errorf("verify: %+v %v", r, err)
	}
}

// honestSave saves: a save that succeeds holds all of the world, one that
// cannot says so.
func (w *rowWorld) honestSave() {
	w.Helper()
	w.write("new", "3")
	s, err := w.save()
	if err != nil {
		w.refused(err, exit.Corrupt, "missing or damaged")
		return
	}
	world, err := worldstate.Open(w.dir, w.store, nil)
	w.must(err)
	defer world.Close()
	if err := world.Has(w.Context(), s.ID); err != nil {
		w.Errorf("the save reported success, and its snapshot lacks %v", err)
	}
}

// TestRow11Healed: one rotten file whose bytes still stand in the world is
// named, and after verify has found it the next save holds it again.
func TestRow11Healed(t *testing.T) {
	t.Parallel()
	eachFace(t, func(w *rowWorld) {
		for _, p := range []string{"a", "b", "c"} {
			w.write(p, strings.Repeat(p, 999)+strings.Repeat("filler", 999))
		}
		w.must(os.WriteFile(w.path("noise"), bytes.Repeat([]byte("\x00\x01"), 4), 0o644))
		first := w.saved()
		w.write("a", "2")
		second := w.saved()
		pack := w.packs()[0]
		blob := strings.TrimSpace(git(w, w.top, "--git-dir="+w.store, "rev-parse", string(first.ID)+":b"))
		var at int
		for line := range strings.SplitSeq(git(w, w.top, "verify-pack", "-v", pack), "\n") {
			if f := strings.Fields(line); len(f) >= 5 && f[0] == blob {
				for _, c := range f[4] {
					at = at*10 + int(c-'0')
				}
			}
		}
		if _, ok := w.face.(packageFace); ok {
			// The World that is open holds the old file; a later one does not.
			w.face = packageFace{w.openPackage(nil)}
		}
		w.spoil(pack, func(b []byte) []byte { b[at+12] ^= 0x40; return b })
		if _, ok := w.face.(packageFace); ok {
			w.face = packageFace{w.openPackage(nil)}
		}
		w.remove("b")
		w.saved()
		_, err := w.restore(second.ID, noOptions)
		w.refused(err, exit.Corrupt, blob, "(b)")
		w.write("b", strings.Repeat("b", 999)+strings.Repeat("filler", 999))
		r, err := w.verify()
		if r.OK || len(r.Problems) != 1 || r.Problems[0].Object != blob || r.Problems[0].Path != "b" {
			w.Errorf("verify: %+v %v", r, err)
		}
		w.saved()
		if _, ok := w.face.(packageFace); ok {
			w.face = packageFace{w.openPackage(nil)}
		}
		if r, err := w.verify(); err != nil || !r.OK {
			w.Errorf("after a save of the same bytes: %+v %v", r, err)
		}
		w.write("b", "2")
		w.back(second)
		w.holds("b", strings.Repeat("b", 999)+strings.Repeat("filler", 999))
	})
}

// TestRow11Limit: at its cap a store takes no more, says so, and is as it was.
func TestRow11Limit(t *testing.T) {
	t.Parallel()
	w := newRowWorld(t)
	w.write("a", "1")
	world := w.openPackage(&worldstate.Options{SizeLimitBytes: 4 << 10})
	w.face = packageFace{world}
	first := w.saved()
	noise := make([]byte, 64<<10)
	for i := range noise {
		noise[i] = byte(i * i >> 5 * 7)
	}
	w.must(os.WriteFile(w.path("big"), noise, 0o644))
	var full *worldstate.LimitError
	_, err := w.save()
	if !errors.As(err, &full) || full.LimitBytes != 4<<10 || full.NeedBytes <= 4<<10 || exit.Code(err) != exit.Limit {
		t.Fatalf("%v", err)
	}
	before := w.look()
	if _, err := w.restore(first.ID, noOptions); exit.Code(err) != exit.Limit {
		t.Errorf("a restore whose present world cannot be saved: %v", err)
	}
	worldtest.Untouched(t, before, w.look(), nil, "a refused restore")
	w.remove("big")
	w.back(first)
	w.whole()
}
