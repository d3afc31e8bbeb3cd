package research

import (
	"context"
	"encoding/json"
	"math"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// toolName is the tool that records research.
const toolName = "investigate"

const (
	maxCites = 20            // operations that one investigation cites
	maxOp    = math.MaxInt32 // the largest number of an operation
)

// Evidence is the part of a task that an investigation may cite.
type Evidence interface {
	// Cite checks that operations of the task can be cited and returns the one that is the
	// result of a successful, read-only call. The error, shown to the model, names what can be
	// cited.
	Cite(ops []uint64) (look uint64, err error)
}

// Tool is the tool that records findings about a subject. It searches nothing itself: it cites
// results that the task already has. Without evidence it describes itself and refuses calls.
func Tool(e Evidence) tool.Tool { return investigate{e} }

type investigate struct{ evidence Evidence }

func (investigate) Spec() tool.Spec {
	one, cites := 1, maxCites
	list := &jsonschema.Schema{
		Type: "array", MinItems: &one, MaxItems: &cites, Items: tool.Int("Number of an operation.", 1, maxOp),
		Description: "Numbers of operations of this task that support the findings; at least one must be " +
			"the result of a successful read-only call (ReadFile, Grep, Glob, recall, or a command such as npm view).",
	}
	return tool.Spec{
		Name: toolName,
		Description: "Record what you found out about a new package, host or model name. Calls that install, reach " +
			"or name one are refused until there is such a record. Look first (files, search, recall, a read-only " +
			"command), then record the findings here. The tool itself looks nothing up.",
		Schema: tool.Params(
			tool.Required("subject", tool.Text("As the refusal names it: npm:NAME, host:HOST, model:NAME.")),
			tool.Required("question", tool.Text("What you wanted to find out.")),
			tool.Required("findings", tool.Text("What you found: names, versions, what speaks against using it.")),
			tool.Required("cites", list),
		),
		ReadOnly: true,
		Silent:   true,
	}
}

func (i investigate) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Subject  string   `json:"subject"`
		Question string   `json:"question"`
		Findings string   `json:"findings"`
		Cites    []uint64 `json:"cites"`
	}](ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	if i.evidence == nil {
		return tool.Errorf(tool.OutsideTask, toolName), nil
	}
	look, err := i.evidence.Cite(a.Cites)
	if err != nil {
		return tool.Errorf("Not recorded: %v", err), nil
	}
	r := tool.Textf("Recorded for %s: %s", a.Subject, a.Findings)
	r.Record = []op.Body{&op.ResearchDone{
		Call: env.Call, Subject: a.Subject, Question: a.Question, Findings: a.Findings, Cites: a.Cites, Look: look,
	}}
	return r, nil
}
