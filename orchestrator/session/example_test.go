package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/tool"
)

// moon is a tool of the embedding program.
type moon struct{}

func (moon) Spec() tool.Spec {
	return tool.Spec{
		Name: "Moon", Description: "Returns the phase of the moon.", Schema: &jsonschema.Schema{Type: "object"},
		ReadOnly: true,
	}
}

func (moon) Call(context.Context, *tool.Env, json.RawMessage) (tool.Result, error) {
	return tool.Textf("waning"), nil
}

// recording stands in for a language model: it calls the tool, writes a file, goes back, opens
// the discarded call again, and answers.
const recording = `turns:
  - calls: [{name: Moon}]
  - calls: [{name: WriteFile, arguments: {path: phase, content: waxing}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 1, reason: the moon is waning}}]
  - expect: [{contains: the moon is waning}]
    calls: [{name: recall, arguments: {op: 12}}]
  - expect: [{on: result, contains: waxing}]
    reply: It is waning.
`

// A task with a tool of one's own, whose agent jumps back, still knows why, and can open what it left.
func Example() {
	dir, err := os.MkdirTemp("", "session")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	world, script := filepath.Join(dir, "world"), filepath.Join(dir, "words.yaml")
	if err := os.Mkdir(world, 0o700); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(script, []byte(recording), 0o600); err != nil {
		log.Fatal(err)
	}
	home := func(name string) string { return map[string]string{"ANAMNESIS_HOME": filepath.Join(dir, "home")}[name] }
	service, err := session.New(session.Options{Getenv: home, Version: "example", Tools: []tool.Tool{moon{}}})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	request := session.Request{
		Dir: world, ID: "moon", Text: "What does the moon do?",
		Settings: session.Settings{Model: "script:" + script, Approval: "auto"},
	}
	task, err := service.Start(ctx, request, session.Client{})
	if err != nil {
		log.Fatal(err)
	}
	defer task.Close()
	out, err := task.Run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.Reason, out.Answer)

	_, err = os.Stat(filepath.Join(world, "phase"))
	fmt.Println("the file is gone:", os.IsNotExist(err))
	err = service.Ops("moon", 0, func(o op.Op) error {
		if jump, ok := o.Body.(*op.JumpIntended); ok {
			fmt.Println("the record has the jump:", jump.From, "to", jump.To, "because", jump.Reason)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// done It is waning.
	// the file is gone: true
	// the record has the jump: 3 to 1 because the moon is waning
}
