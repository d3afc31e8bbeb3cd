package inspect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// recorded writes the stream of a task without a world, and a snapshot of its fold that change may damage.
func recorded(t *testing.T, change func(*state.State), bodies ...op.Body) taskdir.Home {
	t.Helper()
	root := t.TempDir()
	h := taskdir.Home{User: root, State: root, Data: root, Config: root}
	if err := os.MkdirAll(h.Task("t"), 0o700); err != nil {
		t.Fatal(err)
	}
	count, err := tokens.ForEncoding("r50k_base")
	if err != nil {
		t.Fatal(err)
	}
	jo := journal.Options{Count: count.Count, Learned: new(redact.Learned)}
	jo.Stream.Now, jo.Stream.Snapshot = time.Now, state.FoldVersion
	l, err := journal.OpenLedger(h, "t", count, 0, jo)
	if err != nil {
		t.Fatal(err)
	}
	bodies = append([]op.Body{
		&op.TaskOpened{Task: "t", Dir: filepath.Join(root, "w"), Store: filepath.Join(root, "worlds", "x.git")},
	}, bodies...)
	if err := l.Record(t.Context(), bodies...); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		st := l.State()
		change(st)
		data, err := state.Marshal(st)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Journal.Log().WriteSnapshot(state.FoldVersion, data, st.Last); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestExamineFindings: each damage of a task is found once, and a whole task has none.
func TestExamineFindings(t *testing.T) {
	said := &op.UserSaid{Text: "go", Source: op.SourceRequest}
	for name, tt := range map[string]struct {
		h    taskdir.Home
		do   func(h taskdir.Home) error
		want []string // severity and a part of each finding
	}{
		"whole":          {h: recorded(t, nil, said)},
		"with snapshot":  {h: recorded(t, func(*state.State) {}, said)},
		"wrong snapshot": {h: recorded(t, func(s *state.State) { s.Said.Request = "other" }, said), want: []string{"corrupt its snapshot of the index differs"}},
		"no store":       {h: recorded(t, nil, said, &op.WorldSaved{Commit: "c", Tree: "t"}), want: []string{"corrupt operations name 1 of its commits"}},
		"marker without vault": {
			h:    recorded(t, nil, &op.UserSaid{Text: "go [REDACTED:token:0123456789ab]", Source: op.SourceRequest}),
			do:   func(h taskdir.Home) error { return os.Remove(h.Vault("t")) },
			want: []string{"notice the vault is missing"},
		},
		"no vault": {h: recorded(t, nil, said), do: func(h taskdir.Home) error {
			if err := os.Remove(h.Vault("t")); !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		}},
		"damaged vault": {
			h:    recorded(t, nil, said),
			do:   func(h taskdir.Home) error { return os.WriteFile(h.Vault("t"), []byte("no JSON\n{}\n"), 0o600) },
			want: []string{"corrupt "},
		},
		"vault that cannot be read": {
			h: recorded(t, nil, said),
			do: func(h taskdir.Home) error {
				return errors.Join(os.RemoveAll(h.Vault("t")), os.Mkdir(h.Vault("t"), 0o700))
			},
			want: []string{"notice "},
		},
	} {
		if tt.do != nil {
			if err := tt.do(tt.h); err != nil {
				t.Fatal(err)
			}
		}
		d, err := Examine(t.Context(), tt.h, "t")
		if err != nil || len(d.Findings) != len(tt.want) {
			t.Errorf("%s: %v, %v; want %q", name, d.Findings, err, tt.want)
			continue
		}
		for i, f := range d.Findings {
			severity, part, _ := strings.Cut(tt.want[i], " ")
			if string(f.Severity) != severity || !strings.Contains(f.Why, part) {
				t.Errorf("%s: %v, want %q", name, f, tt.want[i])
			}
		}
	}
	for _, id := range []string{"none", "a/b"} {
		if d, err := Examine(t.Context(), recorded(t, nil), id); !errors.Is(err, taskdir.ErrNoTask) {
			t.Errorf("task %s: %+v, %v", id, d, err)
		}
	}
}

// TestFindingsLimit: beyond the limit findings are counted, and a first one of corruption is listed even so.
func TestFindingsLimit(t *testing.T) {
	var d Diagnosis
	for i := range MaxFindings + 1 {
		d.add(opstream.SeverityNotice, "w", "%d", i)
	}
	if len(d.Findings) != MaxFindings || d.Omitted != 1 || d.Has(opstream.SeverityCorrupt) {
		t.Fatalf("%d findings, %d omitted", len(d.Findings), d.Omitted)
	}
	for _, why := range []string{"first", "second"} {
		d.add(opstream.SeverityCorrupt, "w", "%s", why)
	}
	if last := d.Findings[MaxFindings-1]; last.Why != "first" || d.Omitted != 3 || len(d.Findings) != MaxFindings ||
		d.Findings[MaxFindings-2].Severity != opstream.SeverityNotice {
		t.Errorf("last %v, %d omitted", last, d.Omitted)
	}
}

// TestNamedCommits: an operation names each of its commits once.
func TestNamedCommits(t *testing.T) {
	x := &examination{named: map[string][]string{}}
	for i, b := range []op.Body{
		&op.WorldSaved{Commit: "a"}, &op.WorldSaved{}, &op.WorldChanged{From: "a", To: "b"}, &op.JumpDone{Base: "c"},
		&op.WorldRestored{From: "d", To: "d", Base: "e"}, &op.RestoreIntended{FromCommit: "a", ToCommit: "e"},
		&op.JumpIntended{FromCommit: "f", ToCommit: "b", Base: "f"}, &op.UserSaid{Text: "z"},
	} {
		x.names(op.Op{Seq: uint64(i + 1), Body: b})
	}
	want := "map[a:[op 1 op 3 op 6] b:[op 3 op 7] c:[op 4] d:[op 5] e:[op 5 op 6] f:[op 7]]"
	if got := fmt.Sprint(x.named); got != want {
		t.Errorf("named %s, want %s", got, want)
	}
}

// commitAfter is a commit of task t that was made after an operation.
func commitAfter(id, after string, at time.Time, parents ...worldstate.ID) worldstate.Commit {
	return worldstate.Commit{
		ID: worldstate.ID(id), Time: at, Parents: parents,
		Trailers: [][2]string{{workspace.TrailerTask, "t"}, {workspace.TrailerOp, after}},
	}
}

// TestMadeAfter: a commit of the task names the operation it was made after.
func TestMadeAfter(t *testing.T) {
	other := commitAfter("c", "3 abc", time.Time{})
	other.Trailers[0][1] = "u"
	for _, tt := range []struct {
		c   worldstate.Commit
		seq uint64
		ok  bool
	}{
		{commitAfter("c", "3 abc", time.Time{}), 3, true}, {commitAfter("c", "0 abc", time.Time{}), 0, false},
		{commitAfter("c", "3", time.Time{}), 3, false}, {commitAfter("c", "x abc", time.Time{}), 0, false},
		{other, 0, false}, {worldstate.Commit{}, 0, false},
	} {
		if seq, _, ok := madeAfter(tt.c, "t"); ok != tt.ok || ok && seq != tt.seq {
			t.Errorf("%v: %d, %v", tt.c.Trailers, seq, ok)
		}
	}
}

// TestCompareEnds: a commit shows that the stream lost its end or was replaced, unless it is of an earlier task
// of the name.
func TestCompareEnds(t *testing.T) {
	begun := time.Unix(1e9, 5)
	before, since := begun.Add(-time.Hour), begun.Truncate(time.Second)
	for name, tt := range map[string]struct {
		commits []worldstate.Commit // the newest first
		named   int
		corrupt bool // found before
		opened  bool
		want    []string
	}{
		"equal":               {commits: []worldstate.Commit{commitAfter("b", "2 h2", since), commitAfter("a", "1 h1", since)}, opened: true},
		"behind the end":      {commits: []worldstate.Commit{commitAfter("c", "5 h5", since), commitAfter("b", "4 h4", since)}, opened: true, want: []string{"it ends with op 3, and commit c was made after op 5"}},
		"at the end":          {commits: []worldstate.Commit{commitAfter("b", "3 h3", since)}, opened: true},
		"behind damage":       {commits: []worldstate.Commit{commitAfter("b", "5 h5", since)}, opened: true, corrupt: true},
		"of another stream":   {commits: []worldstate.Commit{commitAfter("b", "2 other", since)}, opened: true, want: []string{"commit b was made after: its line's hash is h2, and was other"}},
		"of an earlier task":  {commits: []worldstate.Commit{commitAfter("b", "5 h5", before), commitAfter("a", "2 other", before)}, opened: true},
		"the clock went back": {commits: []worldstate.Commit{commitAfter("b", "5 h5", before, "a"), commitAfter("a", "1 h1", before)}, opened: true, want: []string{"commit b was made after op 5"}},
		"not known":           {commits: []worldstate.Commit{commitAfter("b", "3 h9", since)}, opened: true},
		"no store":            {named: 2, opened: true, want: []string{"operations name 2 of its commits"}},
		"no store or opening": {named: 2},
		"nothing is named":    {opened: true},
		"store of a damaged":  {named: 2, opened: true, corrupt: true},
	} {
		x := &examination{id: "t", begun: begun, last: 3, hashes: map[uint64]string{1: "h1", 2: "h2"},
			named: map[string][]string{}}
		for i := range tt.named {
			x.named[fmt.Sprint(i)] = nil
		}
		if tt.opened {
			x.opened = new(op.TaskOpened)
		}
		if tt.corrupt {
			x.add(opstream.SeverityCorrupt, "before", "damage")
		}
		x.compareEnds(tt.commits)
		found := slices.DeleteFunc(x.Findings, func(f Finding) bool { return f.Where == "before" })
		if len(found) != len(tt.want) || len(found) > 0 && !strings.Contains(found[0].Why, tt.want[0]) {
			t.Errorf("%s: %v, want %q", name, found, tt.want)
		}
	}
}

// TestDamagedLine: a finding about a line names its file, its place there and its operation.
func TestDamagedLine(t *testing.T) {
	h := recorded(t, nil, &op.UserSaid{Text: "original words", Source: op.SourceRequest}, &op.WorldSaved{})
	files, err := filepath.Glob(filepath.Join(h.Task("t"), "ops", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stream: %v", err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], []byte(strings.Replace(string(data), "original words", "replaced words", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Examine(t.Context(), h, "t")
	if err != nil || !d.Has(opstream.SeverityCorrupt) {
		t.Fatalf("%+v, %v", d, err)
	}
	if !slices.ContainsFunc(d.Findings, func(f Finding) bool {
		return strings.Contains(f.Where, ".jsonl at byte ") && strings.Contains(f.Where, "(seq 2)")
	}) {
		t.Errorf("no finding names the line: %v", d.Findings)
	}
	if whole := slices.ContainsFunc(d.Findings, func(f Finding) bool { return strings.HasSuffix(f.Where, "(seq 0)") }); whole {
		t.Errorf("a finding without a line names one: %v", d.Findings)
	}
}

// TestUnsealed: a stream whose writer was killed ends without a seal, unless its last line is torn, which is found
// itself.
func TestUnsealed(t *testing.T) {
	for part, want := range map[string]string{"none": "the stream is not sealed", "half": "torn"} {
		h := recorded(t, nil, &op.UserSaid{Text: "go", Source: op.SourceRequest})
		files, err := filepath.Glob(filepath.Join(h.Task("t"), "ops", "*.jsonl"))
		if err != nil || len(files) != 1 {
			t.Fatalf("streams %q, %v", files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		end := strings.LastIndex(strings.TrimSuffix(string(data), "\n"), "\n") + 1
		if part == "half" {
			end += 10
		}
		if err := os.WriteFile(files[0], data[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Examine(t.Context(), h, "t")
		if err != nil || len(d.Findings) != 1 || !strings.Contains(d.Findings[0].String(), want) ||
			d.Has(opstream.SeverityCorrupt) {
			t.Errorf("%s of the seal: %v, %v", part, d.Findings, err)
		}
	}
}

// TestUnbegun: a task whose stream has no operation was never begun; one whose first operation cannot be read has no
// world to look at.
func TestUnbegun(t *testing.T) {
	for damaged, want := range map[bool]string{false: "the stream is empty: the task was never begun", true: "its first operation cannot be read"} {
		h := recorded(t, nil)
		files, err := filepath.Glob(filepath.Join(h.Task("t"), "ops", "*.jsonl"))
		if err != nil || len(files) != 1 {
			t.Fatalf("streams %q, %v", files, err)
		}
		var data []byte
		if damaged {
			if data, err = os.ReadFile(files[0]); err != nil {
				t.Fatal(err)
			}
			data[0] = 'x'
		}
		if err := os.WriteFile(files[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Examine(t.Context(), h, "t")
		if err != nil ||
			!slices.ContainsFunc(d.Findings, func(f Finding) bool { return strings.HasPrefix(f.Why, want) }) ||
			d.Has(opstream.SeverityCorrupt) != damaged {
			t.Errorf("damaged %v: %v, %v", damaged, d.Findings, err)
		}
	}
}
