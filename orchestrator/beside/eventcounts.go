package beside

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
)

// A newer version of an agent may rename the fields or the events of its hooks. Its sessions are then
// recorded without calls, and no error says so. So the events of each session are counted.

// eventCounts counts the events of a session, or those of an agent that name no session.
type eventCounts struct {
	Agent   sessions.Agent `json:"agent"`
	Version string         `json:"version,omitempty"` // of the agent, if its session file names it
	Events  int            `json:"events"`
	Calls   int            `json:"calls"` // that have a result
	Odd     int            `json:"odd"`   // events without a field that they had
	Lacks   string         `json:"lacks,omitempty"`
}

const (
	countEnding = ".events"
	// manyEvents is how many events a session without any call may have: a conversation has few.
	manyEvents = 20
	// countTime is how long a session counts.
	countTime = 30 * 24 * time.Hour
)

func countFile(h taskdir.Home, task string) string { return filepath.Join(all(h), task+countEnding) }

// count counts an event that is recorded in a task, or names none. A count that is lost is no harm.
func count(h taskdir.Home, task string, e *event, lacks string) {
	k := eventCounts{Agent: e.Agent}
	data, err := os.ReadFile(countFile(h, task))
	if err == nil {
		_ = json.Unmarshal(data, &k)
	} else {
		_ = os.MkdirAll(all(h), 0o700)
	}
	k.Events++
	if lacks != "" {
		k.Odd++
		k.Lacks = fmt.Sprintf("%s without %s", e.Native, lacks)
	} else if e.Name == "PostToolUse" || e.Name == "PostToolUseFailure" {
		k.Calls++
	}
	if lacks != "" || k.Calls == 0 && k.Events >= manyEvents {
		k.Version = cmp.Or(k.Version, agentVersion(e.TranscriptPath))
	}
	if data, err = json.Marshal(k); err == nil {
		_ = os.WriteFile(countFile(h, task), data, 0o600)
	}
}

// missingField names the field that an event of its name has in the known versions of the agent, and this one
// does not; empty: none.
func (e *event) missingField() string {
	id, response := "tool_use_id", "tool_response"
	if e.Agent == sessions.Kimi {
		id, response = "tool_call_id", "tool_output"
	}
	switch e.Name {
	case "UserPromptSubmit":
		if e.Prompt == "" {
			return "prompt"
		}
	case "PreToolUse", "PostToolUse", "PostToolUseFailure":
		switch {
		case e.ToolName == "":
			return "tool_name"
		case len(e.ToolInput) == 0:
			return "tool_input"
		case e.ToolUseID == "":
			return id
		case e.Name == "PostToolUse" && len(e.ToolResponse) == 0:
			return response
		}
	case "PostToolBatch":
		if len(e.ToolCalls) == 0 {
			return "tool_calls"
		}
	case "SessionStart", "Stop", "SessionEnd":
	default:
		return "a known name"
	}
	return ""
}

// versionField is how the session files of Claude Code and Codex name the agent's version.
var versionField = regexp.MustCompile(`"(?:cli_)?version":\s?"(\d[^"]{0,40})"`)

func agentVersion(transcript string) string {
	data, err := durable.ReadTail(transcript, transcriptTail)
	if err != nil {
		return ""
	}
	all := versionField.FindAllSubmatch(data, -1)
	if len(all) == 0 {
		return ""
	}
	return string(all[len(all)-1][1])
}

// changedHooks lists the agents whose hooks this program seems not to understand, a line each.
func changedHooks(h taskdir.Home) (lines []string) {
	sum := map[sessions.Agent]eventCounts{}
	files, _ := filepath.Glob(filepath.Join(all(h), "*"+countEnding)) // the pattern is a valid one
	for _, file := range files {
		var k eventCounts
		info, err := os.Stat(file)
		data, readErr := os.ReadFile(file)
		if err != nil || readErr != nil || json.Unmarshal(data, &k) != nil || time.Since(info.ModTime()) > countTime {
			continue
		}
		if k.Odd*maxOddShare < k.Events && (k.Calls > 0 || k.Events < manyEvents) {
			continue
		}
		s := sum[k.Agent]
		s.Agent, s.Events, s.Calls, s.Odd = k.Agent, s.Events+k.Events, s.Calls+k.Calls, s.Odd+k.Odd
		s.Lacks, s.Version = cmp.Or(k.Lacks, s.Lacks), cmp.Or(k.Version, s.Version)
		sum[k.Agent] = s
	}
	for agent, s := range sum {
		name := strings.TrimSpace(string(agent) + " " + s.Version)
		line := fmt.Sprintf("%s: %s, %s", name, quote.Number(s.Events, "event"), quote.Number(s.Calls, "call"))
		if s.Odd > 0 {
			line += fmt.Sprintf("; %d are not as this program knows them, as %s: its hooks have changed", s.Odd, s.Lacks)
		} else {
			line += ": if it ran tools, its hooks have changed"
		}
		lines = append(lines, line+"; its sessions can be imported until this program is updated")
	}
	slices.Sort(lines)
	return lines
}

// maxOddShare: if one event in this many is odd, the hooks have changed.
const maxOddShare = 4
