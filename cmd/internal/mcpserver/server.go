// Package mcpserver offers the timeline, jumps and cards of tasks to agents over MCP,
// on standard input and output. Every result is text of at most 8 KiB: some clients
// put structured content in the place of the text.
package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/anamnesis/quote"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

const maxResultBytes = 8 << 10

const instructions = `Anamnesis keeps a snapshot of this directory at the end of each step, and the lessons of
earlier work. When the path you are on looks wrong, call timeline, then jump_to_step with the last step that was still
right: files go back, including what shell commands changed, and you are told what failed. Edits that the user made are
kept. After a jump, read files again before you edit them.
Call recall with an error message before you try to fix it.`

// Server answers for the tasks of one home.
type Server struct {
	svc    *session.Service
	dir    string // the directory the server was started in
	getenv func(string) string
	facts  sync.Once // its repository's facts are told once
}

func New(svc *session.Service, dir string, getenv func(string) string) *Server {
	return &Server{svc: svc, dir: dir, getenv: getenv}
}

// Run serves one client until its input ends.
func (s *Server) Run(ctx context.Context, in io.ReadCloser, out io.WriteCloser, version string) error {
	return s.Offer(version).Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
}

// Offer returns the server with its tools and prompts, for any transport.
func (s *Server) Offer(version string) *mcp.Server {
	m := mcp.NewServer(&mcp.Implementation{Name: "anamnesis", Version: version},
		&mcp.ServerOptions{Instructions: instructions})
	s.addTools(m)
	s.addPrompts(m)
	m.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok {
				_ = beside.NoteCall(s.svc.Home, s.client(call)) // the call matters more
				call.Params.Arguments = withoutNull(call.Params.Arguments)
			}
			return next(ctx, method, req)
		}
	})
	return m
}

func (s *Server) client(req *mcp.CallToolRequest) string {
	switch p := req.Session.InitializeParams(); {
	case p != nil && p.ClientInfo != nil:
		return p.ClientInfo.Name
	case s.getenv("CLAUDE_CODE_SESSION_ID") != "": // newer protocols have no request that names the client
		return string(sessions.Claude)
	}
	return ""
}

// add registers a tool whose result is text. An error is a result, too: the model
// reads it.
func add[In any](m *mcp.Server, t *mcp.Tool, answer func(ctx context.Context,
	req *mcp.CallToolRequest, in In) (string, error)) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic("mcpserver: " + err.Error()) // the arguments are a struct of ours
	}
	for _, p := range schema.Properties {
		if slices.Equal(p.Types, []string{"null", "array"}) { // some model providers refuse two types
			p.Type, p.Types = "array", nil
		}
	}
	t.InputSchema = schema
	mcp.AddTool(m, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		text, err := answer(ctx, req, in)
		if err != nil {
			text = strings.TrimSpace(text + "\n" + t.Name + ": " + err.Error())
		}
		content := []mcp.Content{&mcp.TextContent{Text: clip(text)}}
		return &mcp.CallToolResult{IsError: err != nil, Content: content}, nil, nil
	})
}

// withoutNull returns a call's arguments without those that are null: some models send null for what they leave out.
func withoutNull(raw json.RawMessage) json.RawMessage {
	given := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &given) != nil {
		return raw // the SDK reports what is wrong
	}
	maps.DeleteFunc(given, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	data, _ := json.Marshal(given) // values that were decoded can be encoded
	return data
}

func (s *Server) addTools(m *mcp.Server) {
	closed, destructive, additive := false, true, false
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed}
	adds := &mcp.ToolAnnotations{DestructiveHint: &additive, OpenWorldHint: &closed}
	jumps := &mcp.ToolAnnotations{DestructiveHint: &destructive, OpenWorldHint: &closed}
	add(m, &mcp.Tool{Name: "timeline", Annotations: reads,
		Description: "List the steps of this session: which can be returned to, what each did, and which were " +
			"left by a jump."}, s.timeline)
	add(m, &mcp.Tool{Name: "jump_to_step", Annotations: jumps,
		Description: "Return the files of the directory to the end of a step, forward or backward, including what " +
			"shell commands changed. The user's own edits are kept. The result says what was reverted and what the " +
			"steps that are left had learned. dry_run only says what would happen; paths restores these files alone."},
		s.jump)
	add(m, &mcp.Tool{Name: "checkpoint", Annotations: adds,
		Description: "Save the files as they are now as a step of their own, with a note, to return to later."},
		s.checkpoint)
	add(m, &mcp.Tool{Name: "diff", Annotations: reads,
		Description: "Show what changed in the files between the ends of two steps."}, s.diff)
	add(m, &mcp.Tool{Name: "recall", Annotations: reads,
		Description: "Search the lessons of earlier work. Give an error message or a question."}, s.recall)
	add(m, &mcp.Tool{Name: "remember", Annotations: adds,
		Description: "Propose a lesson for later sessions. It is a draft until the user has reviewed it."}, s.remember)
	add(m, &mcp.Tool{Name: "show_operation", Annotations: reads,
		Description: "Show one recorded operation in full, by its number in the timeline, from a byte offset on."},
		s.show)
}

func (s *Server) addPrompts(m *mcp.Server) {
	for _, p := range []struct{ name, about, text string }{
		{"timeline", "Show the steps of this session", "Call the tool timeline and show me the steps of this session."},
		{"jump", "Go back to an earlier step",
			"Call the tool timeline, say which step was the last one that was right and why, and call jump_to_step."},
		{"cards", "Show what is known about the present problem",
			"Call the tool recall with the error or question at hand, and say which of the lessons apply here."},
	} {
		m.AddPrompt(&mcp.Prompt{Name: p.name, Description: p.about},
			func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user",
					Content: &mcp.TextContent{Text: p.text}}}}, nil
			})
	}
}

// clip cuts a text to the size of a result, and says so.
func clip(text string) string {
	if len(text) <= maxResultBytes {
		return strings.ToValidUTF8(text, "�")
	}
	end := quote.RuneStart(text, maxResultBytes-100)
	return strings.ToValidUTF8(fmt.Sprintf("%s\n[%d of %d bytes shown]", text[:end], end, len(text)), "�")
}
