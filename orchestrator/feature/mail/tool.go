package mail

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

//go:embed prompt/senddmail.md
var sendDMailText string

//go:embed prompt/dmail.md
var dmailText string

// The names of the tools. An agent has them only if its spec names them.
const (
	sendName = "SendDMail"
	markName = "dmail"
)

// maxStep bounds a step id; JSON readers agree on integers up to here.
const maxStep = math.MaxInt32

// Mailbox is the interface of the tools to their task.
type Mailbox interface {
	// CheckMail returns the request that sends a D-Mail. The error explains to the model what
	// is wrong with it.
	CheckMail(m op.Mail) (*op.JumpRequested, error)
	// MarkCheckpoint numbers the end of the step under way, for the call with that id. A
	// *tool.CallError is shown to the model; any other error is internal.
	MarkCheckpoint(ctx context.Context, call string) (number int, err error)
}

// Tools are SendDMail and dmail. Without a mailbox they describe themselves and refuse calls.
func Tools(box Mailbox) []tool.Tool { return []tool.Tool{sendDMail{box}, dmail{box}} }

// sendDMail is the tool that replaces the context after a step's end by a message, as Kimi
// CLI's tool of that name does.
type sendDMail struct{ box Mailbox }

// brief is a D-Mail's display to a user.
const brief = "El Psy Kongroo"

const (
	messageText = "What you will see instead of those steps: what you did and learned, what is in the directory, " +
		"what comes next."
	restoreText = "Take the directory back to the checkpoint, too. Default: false."
)

func (sendDMail) Spec() tool.Spec {
	return tool.Spec{
		Name: sendName, Description: strings.TrimSpace(sendDMailText),
		Schema: tool.Params(
			tool.Required("checkpoint_id", tool.Int("Checkpoint to send to: N of a CHECKPOINT N mark.", 0, maxStep)),
			tool.Required("message", tool.Text(messageText)),
			tool.Optional("restore_files", tool.Bool(restoreText)),
		),
		ReadOnly: true,
		Ordered:  true,
		Rewinds:  true,
		Silent:   true,
	}
}

func (d sendDMail) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Checkpoint   int    `json:"checkpoint_id"`
		Message      string `json:"message"`
		RestoreFiles bool   `json:"restore_files"`
	}](ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	m := op.Mail{Checkpoint: a.Checkpoint, Message: a.Message, RestoreFiles: a.RestoreFiles}
	return send(d.box, env, sendName, m)
}

// send requests a D-Mail. Nothing is sent before all calls of the reply are recorded.
func send(box Mailbox, env *tool.Env, name string, m op.Mail) (tool.Result, error) {
	if box == nil {
		return tool.Errorf(tool.OutsideTask, name), nil
	}
	j, err := box.CheckMail(m)
	if err != nil {
		return tool.Errorf("Not sent: %v.", err), nil
	}
	j.By, j.Call = op.ByAgent, env.Call
	return tool.Result{Text: tool.MailUnsent, Jump: j, Display: brief}, nil
}

// dmail is the tool that does the same with checkpoints that it numbers itself, as Chimera's
// tool of that name does.
type dmail struct{ box Mailbox }

func (dmail) Spec() tool.Spec {
	return tool.Spec{
		Name: markName, Description: strings.TrimSpace(dmailText),
		Schema: tool.Params(
			tool.Required("action", tool.OneOf("checkpoint: number the end of this step. send: send a D-Mail to "+
				"a checkpoint.", "checkpoint", "send")),
			tool.Optional("checkpoint_id", tool.Int("With send: the number of the checkpoint.", 0, maxStep)),
			tool.Optional("message", tool.Text("With send: "+strings.ToLower(messageText[:1])+messageText[1:])),
			tool.Optional("restore_files", tool.Bool("With send: "+strings.ToLower(restoreText[:1])+restoreText[1:])),
		),
		ReadOnly: true,
		Ordered:  true,
		Rewinds:  true,
		Silent:   true,
	}
}

func (d dmail) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Action       string `json:"action"`
		Checkpoint   *int   `json:"checkpoint_id"`
		Message      string `json:"message"`
		RestoreFiles bool   `json:"restore_files"`
	}](ctx, args)
	switch {
	case err != nil:
		return tool.Result{}, err
	case a.Action == "send" && (a.Checkpoint == nil || a.Message == ""):
		return tool.Errorf("Not sent: send needs checkpoint_id and message."), nil
	case a.Action == "send":
		m := op.Mail{Checkpoint: *a.Checkpoint, Numbered: true, Message: a.Message, RestoreFiles: a.RestoreFiles}
		return send(d.box, env, markName, m)
	case d.box == nil:
		return tool.Errorf(tool.OutsideTask, markName), nil
	case ctx.Err() != nil:
		return tool.Result{}, fmt.Errorf("create a checkpoint: %w", ctx.Err())
	}
	number, err := d.box.MarkCheckpoint(ctx, env.Call)
	if err != nil {
		if res, aboutTheCall := tool.ErrorResult(err); aboutTheCall {
			return res, nil
		}
		return tool.Result{}, fmt.Errorf("create a checkpoint: %w", err)
	}
	return tool.Textf("%s", tool.CheckpointCreated(number)), nil
}
