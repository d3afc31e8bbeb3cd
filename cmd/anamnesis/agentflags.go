//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/seat"
	"anamnesis/cmd/internal/settings"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool/builtin"
	"anamnesis/orchestrator/tool/mcp"
)

// agentFlags are the flags of run, which resume shares in part, and of the output.
type agentFlags struct {
	seat.Work
	output           string
	allow, ask, deny []string // rules
	guarded          []string
	goal             op.Goal
	plan             bool
}

func (f *agentFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	// A flag that is not given leaves the setting, or what the task began with.
	fl.StringVar(&f.Dir, "dir", ".", "directory the agent works in")
	fl.StringVar(&f.Model, "model", "", "model name, or script:FILE for a recording")
	fl.StringVar(&f.ReflectModel, "reflect-model", "",
		"model that is asked when the agent repeats itself (default: the agent's own)")
	fl.StringVar(&f.BaseURL, "base-url", "", "address of an OpenAI-compatible server (default $OPENAI_BASE_URL)")
	fl.StringVar(&f.Approval, "approval", "", "ask, edits, auto or deny (default: ask on a terminal, deny without one)")
	fl.BoolVar(&f.plan, "plan", false, "plan mode: only read and ask, and end with a plan; --plan=false ends it")
	fl.StringVar(&f.WhenAsked, "when-asked", "",
		"without a terminal, wait for an answer from elsewhere, refuse what asks, or stop "+
			"(default: wait if a notifier other than the bell is configured, else refuse)")
	fl.StringVar(&f.Images, "images", "", "send or never: whether the model gets images (default: by its name)")
	fl.StringVar(&f.Sandbox, "sandbox", "", "what commands may change: world (the default), read-only or off")
	fl.IntVar(&f.Limits.Steps, "max-steps", 0, fmt.Sprintf("steps a turn may take (default %d)", state.DefaultMaxSteps))
	fl.IntVar(&f.Limits.Tokens, "max-tokens", 0,
		"tokens that the whole task may use, prompts and replies; a jump returns none (default: no limit)")
	fl.Float64Var(&f.Limits.USD, "max-cost", 0,
		"US dollars the whole task may cost, by the table of prices; a jump returns none (default: no limit)")
	fl.DurationVar(&f.Limits.Time, "max-time", 0,
		"how long this process may work on the task, such as 30m (default: no limit)")
	fl.DurationVar(&f.Patience, "patience", 0,
		"how long a provider that fails is waited for, such as 2h (default 24h, 10m in a session)")
	fl.StringArrayVar(&f.goal.Until, "until", nil,
		"command that has to end with 0 before the task is done, such as 'go test ./...' (repeatable); it "+
			"runs in a copy of the directory where the kernel can make one, else in the directory itself")
	fl.StringVar(&f.goal.Score, "score", "", "command whose last number scores a step, the higher the better "+
		"(default: the tests of --until that pass, or its commands where no test runner is recognised)")
	fl.BoolVar(&f.goal.Frozen, "until-frozen", false,
		"count a check only while its tests and the files that it names are as they were at the beginning")
	fl.BoolVar(&f.goal.KeepLast, "keep-last", false, "end at the last step, even if an earlier one was better")
	fl.DurationVar(&f.Grace, "grace", notice.DefaultGrace,
		"how long a running command may go on after SIGTERM or the loss of the terminal")
	fl.StringVar(&f.Remote.Address, "remote", "",
		"bucket that keeps the task beside this machine: s3://BUCKET/PREFIX or a directory "+
			"(default: the setting remote, or where the task is kept)")
	fl.DurationVar(&f.Remote.Lease, "lease", replica.DefaultLease,
		"with --remote, how long a task must not have been recorded before another process takes it; at least 1s")
	fl.StringVar(&f.output, "output-format", "text", "text, or stream-json: one JSON object a line")
	fl.StringArrayVar(&f.AllowSecrets, "allow-secrets", nil,
		"pattern of secret files the agent may read, such as .env.test (repeatable)")
	fl.StringArrayVar(&f.Redact, "redact", nil,
		"environment variable whose value is never recorded, shown or sent (repeatable)")
	fl.DurationVar(&f.ToolsWait, "tools-wait", mcp.DefaultFirstWait,
		"how long the first step waits for MCP servers that are still starting")
	fl.BoolVarP(&f.Quiet, "print", "p", false, "print the answer only, no progress")
}

func (f *agentFlags) registerNew(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.Agent, "agent", "",
		"name of an agent, or file of its spec ('anamnesis agent list' shows them; default: default)")
	fl.StringVar(&f.Tree, "worktree", "", "work in a new git worktree of the directory, or a copy where there is no "+
		"commit; 'anamnesis apply' brings the changes back (its `NAME` is a number if none is given)")
	fl.Lookup("worktree").NoOptDefVal = seat.AnyName
	fl.StringVar(&f.ID, "task", "", "name of the task (default: derived from the request)")
	fl.StringArrayVar(&f.allow, "allow", nil,
		"rule for calls that run without a question, such as 'Bash(go test *)' (repeatable)")
	fl.StringArrayVar(&f.ask, "ask", nil, "rule for calls that are asked about (repeatable)")
	fl.StringArrayVar(&f.deny, "deny", nil, "rule for calls that do not run (repeatable)")
	fl.StringArrayVar(&f.Writable, "writable", nil, "directory outside the world that commands may write (repeatable)")
	fl.IntVar(&f.EAS, "eas", 0, "effective attention span in tokens (default: from the EAS table)")
	fl.StringSliceVar(&f.Tools, "tools", nil, "additional tools: "+strings.Join(builtin.OptInNames(), ", "))
	fl.IntVar(&f.Window, "window", 0, "context window of the model in tokens (default: from the EAS table)")
	fl.BoolVar(&f.NoFinalPass, "no-final-pass", false, "do not look for lessons when the task ends")
	fl.BoolVar(&f.NoResearch, "no-research-first", false,
		"let calls about new packages, hosts and models run without an investigation")
	fl.StringArrayVar(&f.guarded, "research-first", nil,
		"further calls that need an investigation: a tool, or Bash:COMMAND where * is any text (repeatable)")
}

// check rejects values that no flag can have, and parses the rules. given reports whether a
// flag was set.
func (f *agentFlags) check(given func(flag string) bool) error {
	if f.output != "text" && f.output != "stream-json" {
		return exit.Usagef("--output-format %q: want text or stream-json", f.output)
	}
	f.JSON = f.output == "stream-json"
	if f.Grace < 0 {
		return exit.Usagef("--grace %s: want a time, such as 20s, or 0", f.Grace)
	} else if f.Grace == 0 {
		f.Grace = -1 // none; in a request, 0 stands for the default
	}
	if slices.ContainsFunc([]string{"until", "score", "until-frozen", "keep-last"}, given) {
		f.Goal = &f.goal
	}
	if given("plan") {
		f.Plan = &f.plan
	}
	if err := settings.CheckFlags(&f.Request, given); err != nil {
		return err
	}
	if f.NoResearch && len(f.guarded) > 0 {
		return exit.Usagef("--research-first and --no-research-first exclude each other: give one of them")
	}
	for _, text := range f.guarded {
		p, err := agent.ParseGuarded(text)
		if err != nil {
			return exit.Usagef("--research-first %v", err)
		}
		f.Guarded = append(f.Guarded, p)
	}
	for i, flag := range []string{"--allow", "--ask", "--deny"} {
		var lists [3][]string
		lists[i] = [][]string{f.allow, f.ask, f.deny}[i]
		rules, err := approval.ParseRules(flag, lists[0], lists[1], lists[2])
		if err != nil {
			return exit.Usagef("%s: %v", flag, err)
		}
		f.Rules = append(f.Rules, rules...)
	}
	return nil
}
