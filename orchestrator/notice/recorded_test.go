package notice_test

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/shell"
	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
)

// recorded is a run of a coding agent that was recorded elsewhere.
type recorded struct {
	ID       string
	Messages []struct {
		Role, Content string
		CallID        string `json:"tool_call_id"`
		Failed        bool   `json:"x_failed"`
		ToolCalls     []struct {
			ID       string
			Function struct{ Arguments string }
		} `json:"tool_calls"`
	}
}

// TestRecordedJumps: jumps drawn from recorded runs, back from a failed call. What lies outside the directory takes at
// most 5 % of the tokens of block and notice. With -v, and ANAMNESIS_SHOW set to a number, it prints so many of each
// source.
func TestRecordedJumps(t *testing.T) {
	dir := cmp.Or(os.Getenv("ANAMNESIS_BENCH_DATA"), filepath.Join("..", "..", "..", "shared", "data"))
	if _, err := os.Stat(filepath.Join(dir, "runs")); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI must have the recorded runs: %v", err)
		}
		t.Skipf("SKIPPED: no recorded runs (%v); set ANAMNESIS_BENCH_DATA to the folder that holds runs", err)
	}
	const eas = 8_000                                    // where blocks are small
	show, _ := strconv.Atoi(os.Getenv("ANAMNESIS_SHOW")) // unset: none
	counter, err := tokens.ForEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	for source, world := range map[string]string{
		"swebench_gemini3pro": "/testbed", "terminalbench_mini": "/app", "multiswebench_java_core": "/fasterxml__jackson-core", "intercode_bash_python": "/workspace",
	} {
		runs := readRuns(t, filepath.Join(dir, "runs", source+".jsonl.gz"))
		rng := rand.New(rand.NewPCG(3, 1))
		total, outside, jumps := 0, 0, 0
		for _, i := range rng.Perm(len(runs)) {
			ops, failed, words := operations(&runs[i], world)
			if jumps == 60 {
				break
			}
			last := ops[len(ops)-1].Step
			if len(failed) == 0 || last < 8 {
				continue
			}
			f := failed[rng.IntN(len(failed))]
			from, to := min(f+rng.IntN(3), last-1), max(0, f-2-rng.IntN(12))
			if f < 4 {
				continue
			}
			jumps++
			reason, _, _ := strings.Cut(words[from+1], "\n\n")
			reason = reason[:min(len(reason), 250)]
			span := slices.DeleteFunc(ops, func(o op.Op) bool { return o.Step <= to || o.Step > from })
			ranges := []op.Range{{First: span[0].Seq, Last: span[len(span)-1].Seq}}
			res, err := anamnesis.Pass(t.Context(), nil, anamnesis.Request{
				Task: runs[i].ID, JumpSeq: ranges[0].Last, From: from, To: to, Reason: reason, Told: true,
				Starts: []int{to}, WorldDir: world,
				Count: counter.Count, EAS: eas, Ops: span, Ranges: ranges, Now: time.Now(),
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			text := notice.Jump(world, op.JumpIntended{From: from, To: to, Reason: reason, Discarded: ranges,
				Backward: true}, &op.JumpDone{Compacted: true}, nil, span, nil, nil, fmt.Sprint("0-", from))
			_, list, _ := strings.Cut(text, "\nOutside the directory, and not undone:")
			list, _, _ = strings.Cut(list, "\nThe steps you left")
			outside, total = outside+counter.Count(list), total+counter.Count(res.Block)+counter.Count(text)
			if jumps <= show {
				t.Logf("%s\n%s\n%s\n\n", source, res.Block, text)
			}
		}
		share := 100 * float64(outside) / float64(max(total, 1))
		t.Logf("%s, EAS %d: %d jumps, %d tokens each, %.1f %% outside the directory", source, eas, jumps,
			total/max(jumps, 1), share)
		if jumps < 60 || share > 5 {
			t.Errorf("%s, EAS %d: %.1f %% of %d jumps", source, eas, share, jumps)
		}
	}
}

func readRuns(t *testing.T, path string) (runs []recorded) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bufio.NewReader(z)); dec.More(); {
		var r recorded
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	return runs
}

var (
	wrapped = regexp.MustCompile(`(?s)^\s*<returncode>(-?\d+)</returncode>\s*(?:<warning>.*?</warning>\s*)?(?:<output(?:_head)?>\n?)?(.*?)\n?(?:</output(?:_tail)?>)?\s*$`)
	written = regexp.MustCompile(`(?:>>?\s*|tee\s+|sed -i\S*\s+(?:'[^']*'|"[^"]*")\s+)([\w./-]+\.\w+)`)
)

// operations returns a run as operations, a step for each reply; the steps whose call failed; and what each reply said.
func operations(r *recorded, world string) (ops []op.Op, failed []int, words map[int]string) {
	words = make(map[int]string)
	step := 0
	add := func(b op.Body) { ops = append(ops, op.Op{Seq: uint64(len(ops) + 1), Step: step, Body: b}) }
	add(&op.WorldSaved{Commit: "c", Tree: "t0", Complete: true})
	commands := make(map[string]string)
	for _, m := range r.Messages {
		switch m.Role {
		case "assistant":
			step++
			words[step] = strings.TrimPrefix(
				strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(m.Content), "DISCUSSION")), "THOUGHT: ")
			reply := &op.ModelReplied{Text: words[step], Finish: "tool_calls"}
			add(reply)
			for _, c := range m.ToolCalls {
				reply.Calls = append(reply.Calls, op.Call{ID: c.ID, Name: "Bash", Args: c.Function.Arguments})
				commands[c.ID] = shell.Command(c.Function.Arguments)
				add(&op.ToolCalled{Call: c.ID, Name: "Bash", Args: c.Function.Arguments})
			}
		case "tool":
			b := &op.ToolReturned{Call: m.CallID, Name: "Bash", Text: m.Content, IsError: m.Failed}
			if w := wrapped.FindStringSubmatch(m.Content); w != nil {
				exit, _ := strconv.Atoi(w[1]) // digits
				b.Exit, b.Text, b.Stdout, b.IsError = &exit, w[2], w[2], exit != 0
			}
			if add(b); b.IsError {
				failed = append(failed, step)
			}
			saved := &op.WorldSaved{Parent: step - 1, Commit: "c", Tree: fmt.Sprint("t", step), Complete: true}
			for _, w := range written.FindAllStringSubmatch(commands[m.CallID], -1) {
				if p := strings.TrimPrefix(w[1], world+"/"); !strings.HasPrefix(p, "/") {
					saved.Changed = append(saved.Changed, strings.TrimPrefix(p, "./"))
				}
			}
			saved.NChanged = len(saved.Changed)
			add(saved)
		}
	}
	return ops, failed, words
}
