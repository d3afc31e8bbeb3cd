//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/anamnesis"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// TestPassCapsOfProgram lets the program leave 200k tokens behind with a model of
// EAS 4k, which answers the pass with prose: at most 8 calls, then the extractor.
func TestPassCapsOfProgram(t *testing.T) {
	t.Parallel()
	heavy(t)
	const reads, tokens = 72, 200_000
	dir := t.TempDir()
	world, home, script := filepath.Join(dir, "w"), filepath.Join(dir, "home"), filepath.Join(dir, "words.yaml")
	if err := os.Mkdir(world, 0o755); err != nil {
		t.Fatal(err)
	}
	var sb strings.Builder
	sb.WriteString("turns:\n  - calls: [{name: Bash, arguments: {command: \"echo 'error: no such part' >&2; exit 1\"}}]\n  - calls:\n")
	for i := range reads {
		text := strings.Repeat(fmt.Sprintf("part %d of a long report, with some words in each of its lines\n", i), 220)
		if err := os.WriteFile(filepath.Join(world, fmt.Sprintf("part%d.txt", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sb, "      - {name: ReadFile, arguments: {path: part%d.txt}}\n", i)
	}
	sb.WriteString("      - {name: jump_to_step, arguments: {step_id: 0, reason: too much to read}}\n  - reply: Done.\npasses:\n  - reply: I would rather not.\n")
	if err := os.WriteFile(script, []byte(sb.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := program(t.Context(), []string{"ANAMNESIS_HOME=" + home}, "run", "--dir", world, "--model",
		"script:"+script,
		"--approval", "auto", "--eas", "4000", "--window", "1000000", "--task", "t", "Read it.")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var left *op.PassDone
	err = taskdir.EachOp(taskdir.Home{State: home}, "t", func(o op.Op) error {
		if b, ok := o.Body.(*op.PassDone); ok && b.RangeTokens >= tokens {
			left = b
		}
		if b, ok := o.Body.(*op.ToolReturned); ok && b.Name == "ReadFile" && b.IsError {
			return errors.New(b.Text)
		}
		return nil
	})
	if err != nil || left == nil {
		t.Fatalf("no pass over %d tokens: %v\n%s", tokens, err, out)
	}
	if left.Calls == 0 || left.Calls > anamnesis.MaxPieces || left.Writer != anamnesis.WriterExtractor ||
		left.Fallback == "" {
		t.Errorf("%d calls, written by the %s: %s", left.Calls, left.Writer, left.Fallback)
	}
	if left.Usage.Prompt > anamnesis.MaxPieces*4_000 || !strings.Contains(left.Block, "no such part") {
		t.Errorf("%d prompt tokens; the block:\n%s", left.Usage.Prompt, left.Block)
	}
}
