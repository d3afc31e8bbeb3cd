//go:build unix

package main

import (
	"fmt"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/model/openai"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool/builtin"
	"anamnesis/orchestrator/tool/mcp"
)

// agentFlags are what run and resume have in common.
type agentFlags struct {
	dir, model, baseURL, approval, output string
	images                                string
	reflectModel                          string
	maxSteps, eas, window                 int
	maxTokens                             int
	maxTime                               time.Duration
	maxCost, earlierCost                  float64 // US dollars; of before, at most
	print                                 bool
	secrets                               []string
	redact                                []string
	tools                                 []string // see op.TaskOpened
	toolsWait                             time.Duration
	noLessons                             bool
	sandbox                               string
	allow, ask, deny                      []string // rules
	writable                              []string
	agent                                 string // name or file of its spec
}

func (f *agentFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.dir, "dir", ".", "directory the agent works in")
	fl.StringVar(&f.model, "model", "", "model name, or script:FILE for a recording")
	fl.StringVar(&f.reflectModel, "reflect-model", "", "model that is asked when the agent goes round in circles (default: the agent's own)")
	fl.StringVar(&f.baseURL, "base-url", "", "address of an OpenAI-compatible server (default $OPENAI_BASE_URL)")
	fl.StringVar(&f.approval, "approval", "", "ask, edits, auto or deny (default: ask on a terminal, deny without one)")
	fl.StringVar(&f.images, "images", "", "send or never: whether the model gets the images of tool results (default: if its name is known to take them)")
	fl.StringVar(&f.sandbox, "sandbox", "", "what commands may change: world (the default), read-only or off")
	fl.IntVar(&f.maxSteps, "max-steps", 0, fmt.Sprintf("steps a turn may take (default %d)", state.DefaultMaxSteps))
	fl.IntVar(&f.maxTokens, "max-tokens", 0, "tokens of the model the whole task may use, prompts and replies together; a jump gives none back (default: no limit)")
	fl.Float64Var(&f.maxCost, "max-cost", 0, "US dollars the whole task may cost, by the table of prices; a jump gives none back (default: no limit)")
	fl.DurationVar(&f.maxTime, "max-time", 0, "how long this process may work on the task, such as 30m (default: no limit)")
	fl.StringVar(&f.output, "output-format", "text", "text, or stream-json: one JSON object a line")
	fl.StringArrayVar(&f.secrets, "allow-secrets", nil, "pattern of secret files the agent may read, such as .env.test (repeatable)")
	fl.StringArrayVar(&f.redact, "redact", nil, "environment variable whose value is kept out of everything recorded, shown or sent (repeatable)")
	fl.BoolVar(&f.noLessons, "no-lessons", false, "do not name a card about the same error on a failed command's result")
	fl.DurationVar(&f.toolsWait, "tools-wait", mcp.DefaultFirstWait, "how long the first step waits for MCP servers that are still starting")
	fl.BoolVarP(&f.print, "print", "p", false, "print the answer only, no progress")
}

// check refuses what cannot be meant. given tells a flag that was set from one
// that was not: a budget of nothing is no "no limit".
func (f *agentFlags) check(given func(flag string) bool) error {
	switch {
	case f.output != "text" && f.output != "stream-json":
		return usageError("--output-format %q: want text or stream-json", f.output)
	case f.maxSteps < 0 || f.maxSteps == 0 && given("max-steps"):
		return usageError("--max-steps %d: want a positive number, or leave it out", f.maxSteps)
	case f.maxTokens < 0 || f.maxTokens == 0 && given("max-tokens"):
		return usageError("--max-tokens %d: want a positive number, or leave it out", f.maxTokens)
	case f.maxCost < 0 || f.maxCost == 0 && given("max-cost") || math.IsNaN(f.maxCost) || math.IsInf(f.maxCost, 0):
		return usageError("--max-cost %v: want a number of US dollars above zero, such as 0.50", f.maxCost)
	case f.maxTime < 0 || f.maxTime == 0 && given("max-time"):
		return usageError("--max-time %s: want a time above zero, such as 30m", f.maxTime)
	case f.images != "" && f.images != string(openai.ImagesSend) && f.images != string(openai.ImagesNever):
		return usageError("--images %q: want send or never", f.images)
	case f.toolsWait <= 0:
		return usageError("--tools-wait %s: want a time above zero, such as 10s", f.toolsWait)
	}
	if _, err := builtin.OptIn(f.tools...); err != nil {
		return usageError("--tools: %v", err)
	}
	if _, err := f.rules(); err != nil {
		return err
	}
	if _, err := guard.ParseConfinement(f.sandbox); f.sandbox != "" && err != nil {
		return usageError("--%v", err)
	}
	for i, dir := range f.writable {
		real, err := realDir(dir)
		if err != nil {
			return usageError("--writable: %v", err)
		}
		if info, err := os.Stat(real); err != nil || !info.IsDir() {
			return usageError("--writable %s: not a directory", dir)
		}
		f.writable[i] = real
	}
	for _, name := range f.redact {
		if n := len(os.Getenv(name)); n < redact.MinKnownBytes {
			return usageError("--redact %s: the variable's value has %d bytes; from %d on it can be told from other text", name, n, redact.MinKnownBytes)
		}
	}
	return nil
}
