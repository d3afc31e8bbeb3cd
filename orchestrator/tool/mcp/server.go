package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/orchestrator/tool"
)

// maxCallTime bounds a call whose server keeps reporting progress, which otherwise restarts
// its time limit.
const maxCallTime = 30 * time.Minute

// server is one configured server and the connection to it, if there is one.
type server struct {
	Server
	o *Options

	// connecting is held while a connection is made, so that concurrent calls make one
	// together.
	connecting sync.Mutex

	mu       sync.Mutex
	ses      *session
	tools    []*sdk.Tool
	said     string        // hash of its tools' descriptions
	stale    bool          // it reported that its tools changed
	failed   error         // why it has no tools
	version  uint64        // changes with tools and failed
	ended    bool          // Close was called
	longest  time.Duration // the longest call; 0: maxCallTime
	calls    uint64
	progress map[string]func(string) // of running calls, by token
}

func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed, s.tools, s.said = err, nil, ""
	s.version++
}

// connected returns a connection, and makes one if there is none.
func (s *server) connected(ctx context.Context) (*session, error) {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	s.mu.Lock()
	ses, ended := s.ses, s.ended
	s.mu.Unlock()
	switch {
	case ended:
		return nil, errors.New("the task is ending")
	case ses != nil && !ses.over():
		return ses, nil
	case ses != nil:
		ses.end()
	}
	cfg, err := Granted(s.Server, s.o.Trust) // its present content, also when it is restarted
	if err != nil {
		return nil, err
	}
	ses, err = connect(ctx, cfg, s.o, events{changed: s.changed, progress: s.progressed})
	if err != nil {
		return nil, err
	}
	tools, err := ses.tools(ctx, s.startTimeout())
	if err != nil {
		ses.end()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ses, s.failed = ses, nil
	s.offer(tools)
	return ses, nil
}

// offer takes a new list of tools; s.mu is held.
func (s *server) offer(tools []*sdk.Tool) {
	s.stale = false
	hash := hashTools(tools)
	if hash == s.said {
		return
	}
	s.tools, s.said = tools, hash
	s.version++
}

func hashTools(tools []*sdk.Tool) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, t := range tools {
		// It was decoded from JSON, so encoding cannot fail.
		_ = enc.Encode([]any{t.Name, t.Title, t.Description, t.InputSchema, t.Annotations})
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (s *server) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

// refresh lists the tools again if the server reported a change.
func (s *server) refresh(ctx context.Context) {
	s.mu.Lock()
	ses, stale := s.ses, s.stale
	s.stale = false
	s.mu.Unlock()
	if !stale || ses == nil || ses.over() {
		return
	}
	tools, err := ses.tools(ctx, s.startTimeout())
	if err != nil {
		if ctx.Err() == nil {
			s.fail(err)
		}
		if errors.Is(err, errSlow) {
			ses.end() // otherwise each of its reports would delay a step as long
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = nil
	s.offer(tools)
}

// close ends the connection for good.
func (s *server) close() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.connecting.Lock()
	defer s.connecting.Unlock()
	s.mu.Lock()
	ses := s.ses
	s.mu.Unlock()
	if ses != nil {
		ses.end()
	}
}

func (s *server) progressed(token any, text string) {
	key, _ := token.(string)
	s.mu.Lock()
	show := s.progress[key]
	s.mu.Unlock()
	if show != nil {
		show(text)
	}
}

// await registers a call for progress under a token of its own.
func (s *server) await(show func(string)) (token string, forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	token = "call-" + strconv.FormatUint(s.calls, 10)
	if s.progress == nil {
		s.progress = make(map[string]func(string))
	}
	s.progress[token] = show
	return token, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.progress, token)
	}
}

// request is one call of a tool.
type request struct {
	tool  string // the server's own name
	args  json.RawMessage
	again bool // calling it twice has the effect of calling it once
	env   *tool.Env
}

// call makes a request. If the connection turns out to be broken before the call was sent, it
// is made again, once. If it breaks during the call, the connection is also made again, but
// the call is repeated only if that is harmless, or if it was not sent: otherwise its outcome
// is unknown, and the result says so.
func (s *server) call(ctx context.Context, r request) (tool.Result, error) {
	ses, err := s.usable(ctx)
	if err != nil {
		return s.broken(ctx, err)
	}
	res, err := s.once(ctx, ses, r)
	if err == nil || ctx.Err() != nil || !lost(err) {
		return s.outcome(ctx, r, res, err)
	}
	// To the library an answer that cannot be decoded is an error like a lost connection: a ping tells them apart.
	if !errors.Is(err, sdk.ErrConnectionClosed) && !errors.As(err, new(*url.Error)) && s.answers(ctx, ses) {
		return tool.Errorf("The answer of the MCP server %s cannot be read: %s. The call may have "+
			"taken effect.", s.Name, oneLine(err.Error())).FromNetwork(), nil
	}
	arrived, why := !unsent(err), reason(err)
	if ses.proc != nil && ses.proc.why() != "" {
		why = errors.New(ses.proc.why())
	}
	ses.end()
	ses, err = s.connected(ctx)
	switch {
	case err != nil && (ctx.Err() != nil || !arrived):
		return s.broken(ctx, fmt.Errorf("%w; it could not be reached again: %w", why, err))
	case err != nil:
		return s.unknown(why, fmt.Sprintf("The server could not be reached again: %s. Its tools do not work; "+
			"the others do.", oneLine(err.Error()))), nil
	case arrived && !r.again:
		return s.unknown(why, "The server is connected again; look before you repeat the call."), nil
	}
	res, err = s.once(ctx, ses, r)
	if err != nil && ctx.Err() == nil && !r.again && lost(err) && !unsent(err) {
		return s.unknown(reason(err), "Look before you repeat the call."), nil
	}
	return s.outcome(ctx, r, res, err)
}

// reason returns why a connection was lost, without the address, which the user configured and
// which may hold a key.
func reason(err error) error {
	if refused, ok := errors.AsType[*refusal](err); ok {
		return refused
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

// unknown returns the result of a call whose connection broke.
func (s *server) unknown(why error, now string) tool.Result {
	return tool.Errorf("Outcome unknown: the connection to the MCP server %s was lost during the call (%s). It may "+
		"have taken effect, in part or in full. %s",
		s.Name, oneLine(why.Error()), now)
}

// usable returns a connection that answers.
func (s *server) usable(ctx context.Context) (*session, error) {
	ses, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	if s.answers(ctx, ses) {
		return ses, nil
	}
	ses.end()
	return s.connected(ctx)
}

// answers reports whether the server responds. A slow server counts as responding.
func (s *server) answers(ctx context.Context, ses *session) bool {
	ping, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := ses.cs.Ping(ping, nil)
	return err == nil || ping.Err() != nil || !lost(err)
}

// lost reports whether a call failed because of the connection, and not by the server's answer
// or a timeout. For an HTTP request without an answer the library returns a server's error, as
// if it had not arrived.
func lost(err error) bool {
	switch {
	case errors.Is(err, sdk.ErrConnectionClosed):
		return true
	case errors.Is(err, errSlow), errors.As(err, new(*refusal)):
		return false
	case errors.As(err, new(*url.Error)):
		return true
	}
	return !errors.As(err, new(*jsonrpc.Error))
}

// unsent reports whether a call failed before there was a connection to send it over.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// once makes one call, within its time limit. Progress restarts the limit.
func (s *server) once(ctx context.Context, ses *session, r request) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	whole := time.AfterFunc(cmp.Or(s.longest, maxCallTime), func() { cancel(errLong) })
	defer whole.Stop()
	limit := time.AfterFunc(s.callTimeout(), func() { cancel(errSlow) })
	defer limit.Stop()
	token, forget := s.await(func(text string) {
		if limit.Reset(s.callTimeout()) {
			if r.env.Progress != nil {
				r.env.Progress(text)
			}
			return
		}
		limit.Stop() // it had fired before, and Reset has started it again
	})
	defer forget()
	params := &sdk.CallToolParams{Name: r.tool, Arguments: r.args}
	params.SetProgressToken(token)
	res, err := ses.cs.CallTool(ctx, params)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errSlow) {
		return nil, cause
	}
	return res, err
}

func (s *server) outcome(ctx context.Context, r request, got *sdk.CallToolResult, err error) (tool.Result, error) {
	switch {
	case err == nil && got.NeedsInput():
		return tool.Errorf("The MCP server %s asked a question back instead of answering, which is not "+
			"supported. Nothing is known of what it did.", s.Name).FromNetwork(), nil
	case err == nil:
		return result(got, r.env.Redaction()), nil
	case ctx.Err() != nil:
		return tool.Result{}, fmt.Errorf("call MCP server %s: %w", s.Name, context.Cause(ctx))
	case errors.Is(err, errLong):
		return tool.Errorf("Timed out: the MCP server %s reported progress and gave no answer for %v, and was told "+
			"to stop. The call may have taken effect.", s.Name, cmp.Or(s.longest, maxCallTime)), nil
	case errors.Is(err, errSlow):
		return tool.Errorf("Timed out: the MCP server %s gave no answer and no progress for %v, and was told to "+
			"stop. The call may have taken effect.", s.Name, s.callTimeout()), nil
	}
	secrets := r.env.Redaction()
	text, _ := headAndTail(secrets.Text(reason(err).Error()), maxErrorRunes)
	res := tool.Errorf("The MCP server %s refused the call: %s", s.Name, text).FromNetwork()
	res.Secrets = secrets.Found()
	return res, nil
}

// maxErrorRunes bounds the text of a server's error.
const maxErrorRunes = 4_000

func (s *server) broken(ctx context.Context, err error) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, fmt.Errorf("call MCP server %s: %w", s.Name, context.Cause(ctx))
	}
	return tool.Errorf("Not run: the MCP server %s cannot be reached: %s. Its tools do not work; the others do.",
		s.Name, oneLine(err.Error())), nil
}
