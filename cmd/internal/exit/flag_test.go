//go:build unix

package exit

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/opstream"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// commands returns a root with a few commands.
func commands() (root, run, jump, kb *cobra.Command) {
	nothing := func(*cobra.Command, []string) {}
	root = &cobra.Command{Use: "anamnesis", Args: Args(cobra.NoArgs), Run: nothing, SilenceErrors: true,
		SilenceUsage: true}
	run = &cobra.Command{Use: "run [REQUEST]", Args: Args(cobra.MaximumNArgs(1)), Run: nothing}
	jump = &cobra.Command{Use: "jump TASK STEP", Args: Args(cobra.ExactArgs(2)), Run: nothing}
	kb = &cobra.Command{Use: "kb", Args: Args(cobra.NoArgs), Run: nothing}
	kb.AddCommand(&cobra.Command{Use: "search WORDS…", Args: Args(cobra.MinimumNArgs(1)), Run: nothing})
	root.AddCommand(run, jump, kb)
	root.SetOut(io.Discard)
	return root, run, jump, kb
}

// TestArgs: an error names what is missing, too much or unknown.
func TestArgs(t *testing.T) {
	root, run, jump, kb := commands()
	odd := Args(func(*cobra.Command, []string) error { return errors.New("odd") })
	for _, row := range []struct {
		cmd   *cobra.Command
		check cobra.PositionalArgs
		args  string
		want  string // "": it is right
	}{
		{jump, jump.Args, "t 3", ""}, {run, run.Args, "", ""}, {run, run.Args, "a", ""},
		{jump, jump.Args, "", "jump: missing TASK and STEP; usage: anamnesis jump TASK STEP"},
		{jump, jump.Args, "t", "jump: missing STEP; usage: anamnesis jump TASK STEP"},
		{jump, jump.Args, "t 3 x", `jump: unexpected argument "x"; usage: anamnesis jump TASK STEP`},
		{run, run.Args, "a b", `run: unexpected argument "b"; usage: anamnesis run [REQUEST]`},
		{jump, odd, "t 3", "odd; see 'anamnesis jump --help'"},
		{kb, odd, "", "odd; see 'anamnesis kb --help'"},
		{root, root.Args, "jmup", `unknown command "jmup"; did you mean jump?`},
		{root, root.Args, "frobnicate", `unknown command "frobnicate"; put a request of several words in quotes, or use 'anamnesis run frobnicate'; see 'anamnesis --help'`},
		{root, root.Args, "zz", `unknown command "zz"; put a request of several words in quotes, or use 'anamnesis run zz'; see 'anamnesis --help'`},
		{kb, kb.Args, "frobnicate", `kb: unknown command "frobnicate"; see 'anamnesis kb --help'`},
		{kb, kb.Args, "serach", `kb: unknown command "serach"; did you mean search?`},
	} {
		err := row.check(row.cmd, strings.Fields(row.args))
		if row.want == "" && err != nil ||
			row.want != "" && (err == nil || err.Error() != row.want || Code(err) != Usage) {
			t.Errorf("%s %q: %v, want %s", row.cmd.Name(), row.args, err, row.want)
		}
	}
}

// TestHelp: help knows the commands that the program knows.
func TestHelp(t *testing.T) {
	for args, want := range map[string]bool{"help": true, "help jump": true, "help kb": true, "help kb search": true, "help jump x": true, "help frobnicate": false, "help kb frobnicate": false} {
		root, _, _, _ := commands()
		Help(root)
		root.SetArgs(strings.Fields(args))
		if err := root.Execute(); (err == nil) != want {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestFlag: the error of a flag says what is wanted, and names the flag that was meant.
func TestFlag(t *testing.T) {
	for arg, want := range map[string]string{
		"--max-steps=x":                    `--max-steps "x": not a number; see 'anamnesis run --help'`,
		"--max-steps=99999999999999999999": `--max-steps "99999999999999999999": a number too large to work with; see 'anamnesis run --help'`,
		"--max-time=5":                     `--max-time "5": not a time such as 90s, 30m or 2h; see 'anamnesis run --help'`,
		"-5":                               "-5: number must not be negative; see 'anamnesis run --help'",
		"--json=maybe":                     "see 'anamnesis run --help'",
		"--max-stepz":                      "did you mean --max-steps? see",
		"--xmodel":                         "did you mean --model? see",
		"--mode":                           "did you mean --model? see",
		"--gti":                            "did you mean --git? see",
		"--gitt":                           "did you mean --git? see",
		"--xodel":                          "did you mean --model? see",
		"--xson":                           "unknown flag: --xson; see",
		"--wit":                            "unknown flag: --wit; see",
		"--gi":                             "unknown flag: --gi; see",
		"--zzzzzzzz":                       "unknown flag: --zzzzzzzz; see",
		"-z":                               "; see 'anamnesis run --help'",
	} {
		_, run, _, _ := commands()
		run.Flags().Int("max-steps", 0, "")
		run.Flags().Duration("max-time", 0, "")
		run.Flags().Bool("json", false, "")
		run.Flags().Bool("git", false, "")
		run.Flags().String("model", "", "")
		err := Flag(run, run.ParseFlags([]string{arg}))
		if !strings.Contains(err.Error(), want) || Code(err) != Usage ||
			strings.Contains(want, "unknown") && strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
}

// TestStream: the error of a stream has its code and a remedy; another is left as it is.
func TestStream(t *testing.T) {
	for err, code := range map[error]int{opstream.ErrLocked: Refused, opstream.ErrCorrupt: Corrupt, opstream.ErrNotFound: Usage, opstream.ErrVersion: Usage} {
		if got := Stream(fmt.Errorf("x: %w", err)); Code(got) != code || !errors.Is(got, err) ||
			len(got.Error()) <= len("x: "+err.Error()+": ") {
			t.Errorf("%v, code %d", got, Code(got))
		}
	}
	if other := errors.New("x"); Stream(other) != other {
		t.Error("another error was changed")
	}
}

// TestText: the remedy of an error is named in verbs and flags.
func TestText(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string // behind the error
	}{
		{errors.New("x"), ""},
		{&remedy.Error{Err: errors.New("x"), Kind: remedy.Resume, Name: "t"}, "; 'anamnesis resume t' continues it"},
		{&taskdir.BusyError{Task: "t"}, "; wait for it; 'anamnesis say t \"…\"' steers it"},
		{&taskdir.BusyError{Task: "t", Home: "/h"}, "; wait for it, or use another --dir"},
		{&worldstate.UnfinishedError{Dir: "/a b", Store: "/s", Err: errors.New("x")}, "anamnesis world abandon --dir '/a b' --store /s"},
		{&worldstate.UnfinishedError{Dir: "/w", Store: "/s", Task: "t", Err: errors.New("x")}, "anamnesis world abandon --task t --dir /w --store /s"},
		{knowledgebase.ErrNotFound, "; 'anamnesis kb list' lists them"},
		{retrieval.ErrBuilding, "; 'anamnesis kb rebuild' waits for them"},
	} {
		got, ok := strings.CutPrefix(Text(fmt.Errorf("do: %w", row.err)), "do: "+row.err.Error())
		if !ok || !strings.Contains(got, row.want) || row.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", row.err, got, row.want)
		}
	}
	if got := Text(fmt.Errorf("do: %w", &session.SettingError{Setting: "max-cost", Text: " is bad"})); got != "do: --max-cost is bad" {
		t.Error(got)
	}
}
