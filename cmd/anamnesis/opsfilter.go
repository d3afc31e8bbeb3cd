//go:build unix

package main

import (
	"encoding/json"
	"regexp"

	"github.com/spf13/cobra"

	"anamnesis/opstream"
)

// opsFilter picks records; the zero value picks all.
type opsFilter struct {
	kind, tool, pattern string
	step                int
	bySteps             bool
	grep                *regexp.Regexp
	tools               map[string]string // names of the tools, by call
}

func (f *opsFilter) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.kind, "kind", "", "only operations of this kind")
	fl.IntVar(&f.step, "step", 0, "only operations of this step")
	fl.StringVar(&f.tool, "tool", "", "only operations about calls of this tool")
	fl.StringVar(&f.pattern, "grep", "", "only operations whose body, as it is printed, matches this regular expression (RE2)")
}

// compile checks the flags once they are parsed.
func (f *opsFilter) compile(cmd *cobra.Command) (err error) {
	if f.bySteps = cmd.Flags().Changed("step"); f.bySteps && f.step < 0 {
		return usageError("--step %d: want the number of a step, from 0", f.step)
	}
	if f.pattern != "" {
		if f.grep, err = regexp.Compile(f.pattern); err != nil {
			return usageError("--grep: %v", err)
		}
	}
	f.tools = map[string]string{}
	return nil
}

// fits reports whether a record is picked. Records must come in their order:
// what belongs to a call is known from the reply that made it.
func (f *opsFilter) fits(rec opstream.Record) bool {
	about := f.tool == "" || f.about(rec)
	return about && (f.kind == "" || rec.Kind == f.kind) && (!f.bySteps || rec.Step == f.step) &&
		(f.grep == nil || f.grep.MatchString(visible(rec.Body)))
}

// about reports whether a record is about a call of the tool.
func (f *opsFilter) about(rec opstream.Record) bool {
	var body struct {
		Call  string `json:"call"`
		Name  string `json:"name"`
		Calls []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"calls"`
	}
	if json.Unmarshal(rec.Body, &body) != nil {
		return false // of another program: its fields mean something else
	}
	found := body.Call != "" && (body.Name == f.tool || body.Name == "" && f.tools[body.Call] == f.tool)
	for _, c := range body.Calls {
		f.tools[c.ID] = c.Name
		found = found || c.Name == f.tool
	}
	return found
}
