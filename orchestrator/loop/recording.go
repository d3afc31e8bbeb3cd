package loop

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"anamnesis/anamnesis/shell"
)

// maxRecordingBytes is the size of a recording, unpacked.
const maxRecordingBytes = 1 << 30

// ErrRecording is returned for a file that is not a recording this package reads.
var ErrRecording = errors.New("not a recorded run")

// RecordedRun is one run of a recording.
type RecordedRun struct {
	Name  string // the file's own id for it, or its number
	Calls []Recorded
}

// ReadRecording reads runs recorded as chat messages: a JSON array of messages; an array of
// runs, or one run, with `messages`, `traj`, `history` or `trajectory`; or lines of JSON, each
// a message, a run, or an object whose `message` is one. It may be gzipped. message lists the
// forms of a message.
func ReadRecording(in io.Reader) ([]RecordedRun, error) {
	br := bufio.NewReader(in)
	var src io.Reader = br
	if magic, err := br.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, fmt.Errorf("%w: unpack it: %w", ErrRecording, err)
		}
		defer z.Close()
		src = z
	}
	data, err := io.ReadAll(io.LimitReader(src, maxRecordingBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrRecording, err)
	case len(data) > maxRecordingBytes:
		return nil, fmt.Errorf("%w: it is larger than %d bytes", ErrRecording, maxRecordingBytes)
	}
	var runs []RecordedRun
	var r recorder
	if data = bytes.TrimSpace(data); bytes.HasPrefix(data, []byte("[")) {
		var items []json.RawMessage
		if err := json.Unmarshal(data, &items); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRecording, err)
		}
		runs = readItems(items, &r)
	} else {
		runs, err = readLines(data, &r)
	}
	if err != nil {
		return nil, err
	}
	if r.seen > 0 {
		runs = append(runs, RecordedRun{Name: fmt.Sprint(len(runs) + 1), Calls: r.calls})
	}
	if r.seen+r.within == 0 {
		return nil, fmt.Errorf("%w: no chat message in it", ErrRecording)
	}
	return runs, nil
}

func readLines(data []byte, r *recorder) ([]RecordedRun, error) {
	var items []json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(data))
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("%w: value %d: %w", ErrRecording, len(items)+1, err)
		}
		items = append(items, raw)
	}
	return readItems(items, r), nil
}

// FromSteps returns the calls of a run with known steps, with the world that each ran in and
// the jumps among them. It uses Tool, Args, Result and Failed of a call.
func FromSteps(steps [][]Recorded) []Recorded {
	var r recorder
	for i, calls := range steps {
		r.step()
		for j, c := range calls {
			r.call(fmt.Sprintf("%d.%d", i, j), c.Tool, c.Args)
		}
		for j, c := range calls {
			r.result(fmt.Sprintf("%d.%d", i, j), c.Result, c.Failed)
		}
	}
	return r.calls
}

// readItems reads runs separately and passes lone messages to r.
func readItems(items []json.RawMessage, r *recorder) []RecordedRun {
	var runs []RecordedRun
	for _, raw := range items {
		var item struct {
			Messages   []json.RawMessage `json:"messages"`
			Traj       []json.RawMessage `json:"traj"`
			History    []json.RawMessage `json:"history"`
			Trajectory []json.RawMessage `json:"trajectory"`
			Message    json.RawMessage   `json:"message"`
			Role       json.RawMessage   `json:"role"`
			InstanceID json.RawMessage   `json:"instance_id"`
			TaskID     json.RawMessage   `json:"task_id"`
			ID         json.RawMessage   `json:"id"`
		}
		fits(raw, &item) // anything else is a message, or is ignored
		// A run may occur twice, in two forms: it is read once.
		told := item.Messages
		for _, other := range [][]json.RawMessage{item.Traj, item.History, item.Trajectory} {
			if told == nil && item.Role == nil {
				told = other
			}
		}
		switch {
		case told != nil:
			var one recorder
			for _, m := range told {
				one.message(m)
			}
			r.within += one.seen
			runs = append(runs, RecordedRun{Name: runName(len(runs)+1, item.InstanceID, item.TaskID, item.ID), Calls: one.calls})
		case bytes.HasPrefix(item.Message, []byte("{")): // otherwise an event's text
			r.message(item.Message)
		default:
			r.message(raw)
		}
	}
	return runs
}

// runName returns a run's position in the file, with its own id if it has one.
func runName(place int, ids ...json.RawMessage) string {
	for _, id := range ids {
		if s := strings.Trim(string(id), `"`); s != "" && s != "null" {
			return fmt.Sprintf("%d (%s)", place, s)
		}
	}
	return fmt.Sprint(place)
}

// recorder turns messages into calls.
type recorder struct {
	seen   int // messages that were understood
	within int // the same, within runs of their own
	calls  []Recorded
	open   map[string]int // index of calls without a result, by id
	world  int

	nameless []string // ids made for the last reply's calls without one, in order

	parents []int // of the steps: step 0 is the beginning, each reply one more
	current int   // the step the next one comes after
}

// call records a call. A recording does not describe the world: each call that may change
// something is assumed to produce a new one.
func (r *recorder) call(id, name, args string) {
	if r.open == nil {
		r.open = make(map[string]int)
	}
	if id == "" {
		id = fmt.Sprintf("\x00%d", len(r.calls))
		r.nameless = append(r.nameless, id)
	}
	r.open[id] = len(r.calls)
	r.calls = append(r.calls, Recorded{Tool: name, Args: args, World: fmt.Sprintf("world %d", r.world), Back: r.back(name, args)})
	if mayChange(name, args) {
		r.world++
	}
}

func (r *recorder) result(id, text string, failed bool) {
	i, ok := r.open[id]
	if !ok {
		return
	}
	delete(r.open, id)
	c := &r.calls[i]
	c.Result, c.Failed = text, failed || strings.HasPrefix(text, "Error")
	if c.Failed && c.Back != nil {
		c.Back, r.current = nil, len(r.parents)-1 // it did not jump
	}
	if c.Failed && c.World == fmt.Sprintf("world %d", r.world-1) && i == len(r.calls)-1 {
		r.world-- // it failed, and nothing came after it: the world is unchanged
	}
}

// step records that a reply begins another step.
func (r *recorder) step() {
	if r.parents == nil {
		r.parents = []int{0}
	}
	r.parents = append(r.parents, r.current)
	r.current = len(r.parents) - 1
	r.nameless = nil
}

// back performs the jump a call requests, and returns it if it goes back. A step that the
// recording does not hold counts as an earlier one.
func (r *recorder) back(name, args string) *Back {
	var a struct {
		StepID *int `json:"step_id"`
	}
	if name != "jump_to_step" || json.Unmarshal([]byte(args), &a) != nil || a.StepID == nil {
		return nil
	}
	to := *a.StepID
	if to < 0 || to >= len(r.parents) {
		return &Back{To: to}
	}
	at := r.current
	for at > to {
		at = r.parents[at]
	}
	r.current = to
	if at != to {
		return nil // to an abandoned path
	}
	return &Back{To: to}
}

// mayChange reports whether a call may change the world: its name does not imply reading, or
// it is a command not known to be local.
func mayChange(name, args string) bool {
	lower := strings.ToLower(name)
	var a struct {
		Command string `json:"command"`
	}
	switch lower {
	case "bash", "run", "shell", "execute_bash", "terminal":
		return json.Unmarshal([]byte(args), &a) != nil || !shell.LooksOnly(a.Command)
	case "str_replace_editor", "file_editor":
		return json.Unmarshal([]byte(args), &a) != nil || a.Command != "view"
	}
	for _, prefix := range []string{"read", "get", "list", "search", "find", "view", "grep", "glob", "ls", "cat", "think", "calculate", "fetch", "show", "recall", "open"} {
		if strings.HasPrefix(lower, prefix) {
			return false
		}
	}
	return true
}
