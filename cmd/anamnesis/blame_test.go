//go:build unix

package main

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/blame"
	"anamnesis/orchestrator/taskdir"
)

// world is the lines of each file.
type textFiles map[string][]string

// randomWork returns a script of calls on about 50 files: writes, edits, sed, renames and jumps.
func randomWork(r *rand.Rand, steps int) string {
	words := strings.Fields("alpha beta gamma delta eps zeta eta theta iota kappa")
	fresh := func() string { return fmt.Sprintf("%s %s %d", words[r.Intn(10)], words[r.Intn(10)], r.Intn(1e6)) }
	ended := []textFiles{{}}
	now, current := textFiles{}, 0
	var b strings.Builder
	b.WriteString("turns:\n")
	left := map[int]bool{}
	for step := 1; step <= steps; step++ {
		name, args := "Bash", map[string]any{"command": fmt.Sprint("true ", step)}
		kind, names := r.Float64(), slices.Sorted(maps.Keys(now))
		target := step - 2 - r.Intn(7)
		path := ""
		if len(names) > 0 {
			path = names[r.Intn(len(names))]
		}
		switch {
		case len(names) < 50 && (kind < .4 || path == ""):
			path = fmt.Sprintf("d%d/f%d.txt", r.Intn(7), step)
			for range 5 + r.Intn(50) {
				now[path] = append(now[path], fresh())
			}
			name, args = "WriteFile", map[string]any{"path": path, "content": strings.Join(now[path], "\n") + "\n"}
		case kind < .75:
			i := r.Intn(len(now[path]))
			var lines []string
			for range 1 + r.Intn(4) {
				lines = append(lines, fresh())
			}
			name, args = "StrReplaceFile",
				map[string]any{"path": path, "old": now[path][i], "new": strings.Join(lines, "\n"), "replace_all": true}
			now[path] = slices.Replace(slices.Clone(now[path]), i, i+1, lines...)
		case kind < .87:
			word := words[r.Intn(10)]
			args["command"] = fmt.Sprintf("sed -i 's/^%s /X%d /' %s", word, step, path)
			for i, l := range now[path] {
				if rest, ok := strings.CutPrefix(l, word+" "); ok {
					now[path] = slices.Replace(slices.Clone(now[path]), i, i+1, fmt.Sprintf("X%d %s", step, rest))
				}
			}
		case kind < .94:
			to := fmt.Sprintf("d%d/m%d.txt", r.Intn(7), step)
			args["command"] = fmt.Sprintf("mkdir -p %s && mv %s %s", filepath.Dir(to), path, to)
			now[to] = now[path]
			delete(now, path)
		case target > 0 && current == step-1 && !left[target]:
			left[target] = true
			name, args = "jump_to_step", map[string]any{"step_id": target, "reason": fmt.Sprint("another way ", step)}
		}
		data, _ := json.Marshal([]map[string]any{{"name": name, "arguments": args}})
		fmt.Fprintf(&b, "  - calls: %s\n", data)
		ended = append(ended, maps.Clone(now))
		if current = step; name == "jump_to_step" {
			now = maps.Clone(ended[target])
		}
	}
	return b.String() + "  - reply: Done.\n"
}

// TestBlameReplay compares what wrote each line of the files of a long task with a replay: an id is given to each
// line at the step in which it appears, and carried through every snapshot by a longest common subsequence.
func TestBlameReplay(t *testing.T) {
	t.Parallel()
	heavy(t)
	const steps = 300
	dir := t.TempDir()
	home, world := filepath.Join(dir, "home"), filepath.Join(dir, "w")
	script := filepath.Join(dir, "words.yaml")
	if err := os.WriteFile(script, []byte(randomWork(rand.New(rand.NewSource(7)), steps)), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) []byte {
		t.Helper()
		cmd := exec.Command("anamnesis", args...) // the test binary, by testscript
		cmd.Dir, cmd.Env = world, append(os.Environ(), "ANAMNESIS_HOME="+home, "HOME="+dir)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return out
	}
	if err := os.Mkdir(world, 0o700); err != nil {
		t.Fatal(err)
	}
	run("run", "--model", "script:"+script, "--approval", "auto", "--task", "t", "--eas", "10000000", "--max-steps",
		"1000", "Go.")

	stores, _ := filepath.Glob(filepath.Join(home, "worlds", "*.git"))
	read := func(commit string) textFiles {
		git := exec.Command("git", "--git-dir", stores[0], "archive", "--format=tar", commit)
		untar := exec.Command("tar", "-xf", "-", "-C", t.TempDir())
		untar.Stdin, _ = git.StdoutPipe()
		if err := git.Start(); err != nil {
			t.Fatal(err)
		}
		if err := untar.Run(); err != nil || git.Wait() != nil {
			t.Fatalf("read %s: %v", commit, err)
		}
		files := textFiles{}
		names, _ := filepath.Glob(filepath.Join(untar.Args[4], "*", "*"))
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(untar.Args[4], name)
			files[rel] = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		}
		return files
	}
	texts := map[int]textFiles{}
	ids := map[int]map[string][]int{} // of the lines of each file at each step
	byCommit := map[string]textFiles{}
	current := 0
	err := taskdir.EachOp(taskdir.Home{State: home}, "t", func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.JumpDone:
			current = b.To
		case *op.WorldSaved:
			if byCommit[b.Commit] == nil {
				byCommit[b.Commit] = read(b.Commit)
			}
			texts[o.Step] = byCommit[b.Commit]
			ids[o.Step] = carry(texts[b.Parent], ids[b.Parent], texts[o.Step], o.Step)
			current = o.Step
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lines, agree := 0, 0
	for path, want := range ids[current] {
		var a blame.Answer
		if err := json.Unmarshal(run("blame", "--json", path), &a); err != nil {
			t.Fatal(err)
		}
		if len(a.Lines) != len(want) {
			t.Fatalf("%s: %d lines, want %d", path, len(a.Lines), len(want))
		}
		for i, l := range a.Lines {
			o := a.Origins[l.Origin]
			lines++
			if o.Kind == blame.Step && o.Step == want[i] {
				agree++
			}
			if l.Text != texts[current][path][i] {
				t.Errorf("%s:%d is %q, want %q", path, i+1, l.Text, texts[current][path][i])
			}
		}
	}
	t.Logf("%d files, %d lines, %.1f %% agree", len(ids[current]), lines, 100*float64(agree)/float64(lines))
	if len(ids[current]) < 45 || agree*100 < lines*95 {
		t.Errorf("%d of %d lines in %d files agree, want 95 %% in about 50", agree, lines, len(ids[current]))
	}
}

// carry returns the ids of the lines of each file after a step: those of the file before, or of the file that went
// away in the step and has most in common, where a line stayed, else the step.
func carry(before textFiles, ids map[string][]int, after textFiles, step int) map[string][]int {
	out := map[string][]int{}
	for path, lines := range after {
		from := path
		if _, ok := before[path]; !ok {
			most := len(lines) / 2
			for other, text := range before {
				if _, stays := after[other]; !stays {
					if n := len(common(text, lines)); n >= most && n > 0 {
						from, most = other, n
					}
				}
			}
		}
		own := make([]int, len(lines))
		for i := range own {
			own[i] = step
		}
		for _, pair := range common(before[from], lines) {
			own[pair[1]] = ids[from][pair[0]]
		}
		out[path] = own
	}
	return out
}

// common returns the places of a longest common subsequence.
func common(a, b []string) (pairs [][2]int) {
	long := make([][]int, len(a)+1)
	for i := range long {
		long[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				long[i][j] = long[i+1][j+1] + 1
			} else {
				long[i][j] = max(long[i+1][j], long[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case long[i+1][j] >= long[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// TestBlameImported: sessions of all agents have no snapshots. What their recorded edits wrote is theirs where the
// file has it; a line that only a command or an earlier edit has is said to be, and one that nothing has is not known.
func TestBlameImported(t *testing.T) {
	const last = "from decimal import Decimal\n\n\ndef total(prices):\n    return str(sum(Decimal(p) for p in prices))\n"
	for _, tt := range []struct{ agent, session, dir string }{
		{"claude-code", "claude/projects/-home-dev-claude-proj/03fbf9e7-881b-4694-8972-a641402d940d.jsonl.gz", "/home/dev/claude/proj"},
		{"codex", "codex/sessions/2026/11/22/rollout-2026-11-22T16-53-32-01a2042d-5faa-7723-88a9-3ac5115e9f97.jsonl.gz", "/home/dev/codex/proj"},
		{"gemini", "gemini/tmp/proj/chats/session-2026-11-22T16-53-e8f1cf91.jsonl.gz", "/home/dev/gemini/proj"},
		{"opencode", "opencode/export.json.gz", "/home/dev/opencode/proj"},
		{"kimi", "kimi/sessions/wd_proj_5ccc09ad62ab/session_53679675-fe3b-4570-ba8c-ad01170fe1a8/agents/main/wire.jsonl.gz", "/home/dev/kimi/proj"},
	} {
		t.Run(tt.agent, func(t *testing.T) {
			dir := t.TempDir()
			world := filepath.Join(dir, "w")
			run := func(args ...string) string {
				t.Helper()
				cmd := exec.Command("anamnesis", args...)
				cmd.Dir, cmd.Env = world, append(os.Environ(),
					"ANAMNESIS_HOME="+filepath.Join(dir, "home"), "HOME="+dir)
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			write := func(name, text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(world, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(world, 0o700); err != nil {
				t.Fatal(err)
			}
			write("totals.py", "")
			session := recordedSession(t, tt.session)
			name := strings.TrimSuffix(filepath.Base(tt.session), ".gz")
			write(name, strings.ReplaceAll(session, tt.dir, world))
			run("import", "--yes", name)

			write("totals.py", last+"# mine\n")
			got := run("blame", "totals.py")
			t.Logf("%s", got)
			step := tt.agent + "_[0-9a-f]+@8"
			if tt.agent == "claude-code" {
				step = "claude-code_[0-9a-f]+@6"
			}
			if tt.agent == "codex" { // it wrote the file by a command
				step = "unknown"
			}
			if !regexp.MustCompile("(?s)^1  " + step + ".*\n5  " + step + ".*\n6  unknown +# mine").MatchString(got) {
				t.Errorf("want lines 1 and 5 to be %s, and 6 not known", step)
			}
			got = run("blame", "totals.py:5")
			t.Logf("%s", got)
			if !strings.Contains(got, "a session of "+tt.agent) || !strings.Contains(got, "Make ") {
				t.Error("want the session and its request")
			}
			// What only the first edit has is a guess: it is undone in the text that the session ended with. Where
			// nothing wrote the whole file after it, it fits.
			write("totals.py", "def total(prices):\n    return str(round(sum(float(p) for p in prices), 2))\n")
			got = run("blame", "totals.py:2")
			t.Logf("%s", got)
			want := "  perhaps  step 3 of "
			if tt.agent == "codex" {
				want = "\nstep 3 of "
			}
			if !strings.Contains(got, want) {
				t.Errorf("want %q", want)
			}
		})
	}
}

// recordedSession returns what a real agent wrote.
func recordedSession(t *testing.T, name string) string {
	path := filepath.Join(cmp.Or(os.Getenv("ANAMNESIS_BENCH_DATA"), filepath.Join("..", "..", "..", "shared", "data")),
		"agents", name)
	f, err := os.Open(path)
	if err != nil && os.Getenv("ANAMNESIS_CI") == "" {
		t.Skipf("SKIPPED: no recorded sessions (%v); set ANAMNESIS_BENCH_DATA to the folder that holds agents/", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
