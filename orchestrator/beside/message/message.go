// Package message holds what hooks and recorders send each other. The client writes and reads
// the same without encoding/json.
package message

import (
	"encoding/json"
	"errors"
	"io"

	"anamnesis/orchestrator/beside/client"
)

// Request is a request to a recorder, a line of JSON.
type Request struct {
	Verb    string `json:"verb"`    // client.EventVerb, StopVerb, or that of taskdir.CloseVerb
	Program string `json:"program"` // see client.Program
	Event   string `json:"event"`   // the name of the hook's own
	// Data is the event, which the recorder redacts and writes to the file of its name; empty:
	// that file exists.
	Data    json.RawMessage `json:"data,omitempty"`
	Environ []string        `json:"environ"` // the hook's: its secrets are redacted
}

// StopVerb ends the recorder.
const StopVerb = "stop"

// Reply is a recorder's answer, a line of JSON. To a request with an event in it there
// are two: the first, when the event is on disk, and the second, when it is recorded.
type Reply struct {
	OK    bool   `json:"ok"`
	Reply []byte `json:"reply"` // for the agent
	Ends  bool   `json:"ends"`  // the recorder is of another program, and ends
}

// Head is what a hook reads of an event.
type Head struct {
	SessionID string `json:"session_id"`
	Cwd       string `json:"cwd"`
	Name      string `json:"hook_event_name"`
}

// Read reads an event from a hook's standard input.
func Read(in io.Reader) (data []byte, head Head, err error) {
	if data, err = io.ReadAll(io.LimitReader(in, client.MaxEventBytes)); err != nil {
		return nil, head, err
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return data, head, err
	}
	if head.SessionID == "" || head.Name == "" || head.Cwd == "" {
		return data, head, errors.New("it names no session, event or directory")
	}
	return data, head, nil
}
