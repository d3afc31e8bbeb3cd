//go:build unix

package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxTools bounds the tools one server may offer.
const maxTools = 1_000

// session is one connection to a server, from its start to its end.
type session struct {
	cs     *sdk.ClientSession
	proc   *process           // nil: reached over HTTP
	stop   context.CancelFunc // ends what the connection still does
	closed chan struct{}      // closed when the connection has ended
	once   sync.Once
}

// events are what a server says by itself. They are called from the
// connection's goroutine and must not wait for it.
type events struct {
	changed  func()
	progress func(token any, text string)
}

// errSlow: the server did not answer in time.
var errSlow = errors.New("it did not answer in time")

// errLong: it did not, although it reported progress.
var errLong = fmt.Errorf("%w, whatever progress it reported", errSlow)

// connect starts a server or reaches it, and shakes hands, within its start
// timeout. The connection outlives ctx. Where a project's server does not start,
// the error says that more can be granted.
func connect(ctx context.Context, s Server, o *Options, on events) (*session, error) {
	ses, err := begin(ctx, s, o, on)
	if err != nil && ctx.Err() == nil && s.confined() && o.Sandbox != nil {
		err = fmt.Errorf("%w (it runs in a sandbox; 'anamnesis mcp approve %s' grants more: --network, --read, …)", err, s.Name)
	}
	return ses, err
}

func begin(ctx context.Context, s Server, o *Options, on events) (*session, error) {
	life, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	limit := time.AfterFunc(s.startTimeout(), func() { stop(errSlow) })
	defer limit.Stop()
	release := context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })
	defer release()
	ses := &session{stop: func() { stop(context.Canceled) }, closed: make(chan struct{})}
	transport, err := ses.transport(life, s, o)
	if err != nil {
		stop(err)
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "anamnesis", Version: o.Program}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // no roots, no sampling: a server gets what it is called with
		// A call is made once: who is asked back says so; see server.outcome.
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { on.changed() },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			on.progress(r.Params.ProgressToken, progressText(r.Params))
		},
	})
	cs, err := client.Connect(life, transport, nil)
	if err != nil {
		cause := context.Cause(life)
		if err = reason(err); cause != nil {
			err = cause
		}
		stop(err)
		if ses.proc != nil {
			ses.proc.close()
			if cause == nil { // it left by itself, and may have said why
				err = fmt.Errorf("%s (%w)", ses.proc.why(), err)
			}
			err = fmt.Errorf("%w%s", err, ses.proc.aside())
		}
		return nil, err
	}
	ses.cs = cs
	go func() { // ends with the connection, which end waits for
		_ = cs.Wait()
		close(ses.closed)
	}()
	return ses, nil
}

// transport starts what the connection runs over.
func (ses *session) transport(ctx context.Context, s Server, o *Options) (sdk.Transport, error) {
	if s.URL == "" {
		p, err := startProcess(ctx, s, o)
		if err != nil {
			return nil, err
		}
		ses.proc = p
		messages := newRewriting(p.out, false)
		messages.stray = p.keepStray
		return &sdk.IOTransport{Reader: messages, Writer: input{p.stdin}, MaxLineLength: maxMessageBytes}, nil
	}
	headers, err := expandAll(s.Headers, o.Getenv)
	if err != nil {
		return nil, fmt.Errorf("header %w", err)
	}
	address, err := expand(s.URL, o.Getenv)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	return &sdk.StreamableClientTransport{
		Endpoint:     address,
		HTTPClient:   &http.Client{Transport: &carrier{headers: headers, through: http.DefaultTransport}, CheckRedirect: sameOrigin},
		MaxEventSize: maxMessageBytes,
	}, nil
}

// end ends the connection and the process behind it.
func (ses *session) end() {
	ses.once.Do(func() {
		if ses.proc != nil { // its input ends first: the polite way to say so
			ses.proc.close()
		}
		_ = ses.cs.Close()
		ses.stop()
		<-ses.closed
	})
}

// over reports whether the connection has ended.
func (ses *session) over() bool {
	select {
	case <-ses.closed:
		return true
	default:
		return ses.proc != nil && ses.proc.why() != ""
	}
}

// tools lists what the server offers.
func (ses *session) tools(ctx context.Context, limit time.Duration) ([]*sdk.Tool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	var all []*sdk.Tool
	for t, err := range ses.cs.Tools(ctx, nil) {
		switch {
		case err != nil && context.Cause(ctx) != nil:
			return nil, fmt.Errorf("list its tools: %w%s", context.Cause(ctx), ses.proc.aside())
		case err != nil:
			return nil, fmt.Errorf("list its tools: %w", err)
		case len(all) == maxTools:
			return nil, fmt.Errorf("it offers more than %d tools", maxTools)
		}
		all = append(all, t)
	}
	return all, nil
}

// info names the server as it names itself; it need not.
func (ses *session) info() string {
	r := ses.cs.InitializeResult()
	if r == nil || r.ServerInfo == nil {
		return ""
	}
	return words(r.ServerInfo.Name, r.ServerInfo.Version)
}

func progressText(p *sdk.ProgressNotificationParams) string {
	text := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %g", p.Total)
	}
	return words(text, p.Message)
}
