package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCompletion: each shell, with its script, completes tasks, steps, models and cards.
func TestCompletion(t *testing.T) {
	t.Parallel()
	heavy(t)
	d := onScreen(t, 100, 30, `turns: [{reply: Done.}]`)
	d.write("card.md",
		"---\ntype: knowledge_card\ntopic: Paths in lexers\nsource_task: t\n---\n- **Issue**: lexers must keep paths whole.\n")
	run := func(program string, args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = filepath.Join(d.dir, "w"), d.env()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", program, args, err, out)
		}
		return string(out)
	}
	run(filepath.Join(d.dir, "anamnesis"), "run", "--model", "script:../words.yaml", "begin")
	run(filepath.Join(d.dir, "anamnesis"), "kb", "add", "../card.md")
	card := regexp.MustCompile(`\b[a-z2-7]{16}\b`).FindString(run(filepath.Join(d.dir, "anamnesis"), "kb", "list"))
	lines := map[string]string{ // and the word that completes each
		"anamnesis resume ": "task_1_begin", "anamnesis timeline ta": "task_1_begin", "anamnesis jump task_1_begin ": "1",
		"anamnesis run --model claude-opus-4.": "claude-opus-4.5", "anamnesis kb show ": card, "anamnesis comp": "completion",
	}
	for _, shell := range []string{"bash", "fish", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				if os.Getenv("ANAMNESIS_CI") != "" {
					t.Fatal("this needs ", shell, ", and CI must have it")
				}
				t.Skip("SKIPPED: ", shell, " is not installed")
			}
			if shell == "zsh" {
				d.types("zsh -f\n")
				d.types("autoload -U compinit && compinit -D && source <(anamnesis completion zsh); PS1='ready %%'\n")
				d.sees("\nready %")
			}
			for line, want := range lines {
				switch shell {
				case "fish":
					if got := run(shell, "--no-config", "-c", "anamnesis completion fish | source; complete -C '"+line+"'"); !strings.Contains("\n"+got, "\n"+want) {
						t.Errorf("%q: %q, want %s", line, got, want)
					}
				case "bash":
					script := `source /usr/share/bash-completion/bash_completion; source <(anamnesis completion bash); COMP_LINE="$0"; COMP_POINT=${#0}; read -ra COMP_WORDS <<<"$0"; [[ $0 == *" " ]] && COMP_WORDS+=(""); ` +
						`COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); __start_anamnesis; printf '%s\n' "${COMPREPLY[@]}"`
					if got := run(shell, "--norc", "-c", script, line); !strings.Contains("\n"+got, "\n"+want) {
						t.Errorf("%q: %q, want %s", line, got, want)
					}
				case "zsh":
					d.types("clear\n")
					d.sees("ready %")
					d.types(line)
					d.press("Tab")
					d.sees(want)
					d.press("C-u")
				}
			}
		})
	}
}
