package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/orchestrator/remedy"
)

// maxTools bounds the tools one server may offer.
const maxTools = 1_000

// session is one connection to a server, from its start to its end.
type session struct {
	cs     *sdk.ClientSession
	proc   *process           // nil: reached over HTTP
	stop   context.CancelFunc // cancels the connection's work
	closed chan struct{}      // closed when the connection has ended
	once   sync.Once
}

// events are a server's notifications. They are called from the connection's goroutine and
// must not block it.
type events struct {
	changed  func()
	progress func(token any, text string)
}

// errSlow: the server did not answer in time.
var errSlow = errors.New("it did not answer in time")

// errLong: it did not answer, although it reported progress.
var errLong = fmt.Errorf("%w, whatever progress it reported", errSlow)

// connect starts or reaches a server, and shakes hands, within its start timeout. The
// connection outlives ctx. If a project's server does not start, the error mentions further
// grants.
func connect(ctx context.Context, s Server, o *Options, on events) (*session, error) {
	ses, err := begin(ctx, s, o, on)
	switch {
	case err == nil || ctx.Err() != nil:
	case s.confined() && o.Sandbox != nil:
		err = remedy.With(err, remedy.GrantServer, s.Name)
	case s.Project == "" && s.URL == "" && s.Cwd == "":
		for _, a := range s.Args {
			if _, missing := os.Stat(filepath.Join(o.Dir, a)); a != "" && missing == nil && !filepath.IsAbs(a) {
				return nil, fmt.Errorf("%w (%s is a file of the project, and the server runs in an empty directory: "+
					"give an absolute path, ${%s} for the project's; \"cwd\": %q runs it in the project, outside the "+
					"sandbox)",
					err, a, ProjectVariable, CwdProject)
			}
		}
	}
	return ses, err
}

func begin(ctx context.Context, s Server, o *Options, on events) (*session, error) {
	life, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	// These two end only an attempt to connect: the connection lives until end.
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
	capabilities := &sdk.ClientCapabilities{}
	if s.URL == "" { // a service elsewhere has no use for a directory here
		//lint:ignore SA1019 today's servers know the project by its roots; the next protocol has nothing for local ones
		capabilities.RootsV2 = &sdk.RootCapabilities{}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "anamnesis", Version: o.Program}, &sdk.ClientOptions{
		Capabilities: capabilities, // no sampling: a server gets only the directory and the arguments of calls
		// A call is made once: a question back is reported; see server.outcome.
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { on.changed() },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			on.progress(r.Params.ProgressToken, progressText(r.Params))
		},
	})
	//lint:ignore SA1019 as above
	client.AddRoots(&sdk.Root{Name: filepath.Base(o.Dir), URI: (&url.URL{Scheme: "file", Path: o.Dir}).String()})
	cs, err := client.Connect(life, transport, nil)
	if err != nil {
		cause := context.Cause(life)
		if err = reason(err); cause != nil {
			err = cause
		}
		stop(err)
		if ses.proc != nil {
			ses.proc.close()
			if cause == nil { // it ended, and may have printed why
				err = fmt.Errorf("%s (%w)", ses.proc.why(), err)
			}
			err = fmt.Errorf("%w%s", err, ses.proc.aside())
		}
		return nil, err
	}
	ses.cs = cs
	go func() { // ends with the connection; end waits for it
		_ = cs.Wait()
		close(ses.closed)
	}()
	return ses, nil
}

func (ses *session) transport(ctx context.Context, s Server, o *Options) (sdk.Transport, error) {
	if s.URL == "" {
		p, err := startProcess(ctx, s, o)
		if err != nil {
			return nil, err
		}
		ses.proc = p
		return &sdk.IOTransport{
			Reader: newMessages(p.out, p.keepStray), Writer: p.stdin, MaxLineLength: maxMessageBytes,
		}, nil
	}
	headers, err := expandAll(s.Headers, o.Getenv)
	if err != nil {
		return nil, fmt.Errorf("header %w", err)
	}
	address, err := expand(s.URL, o.Getenv)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	handler := o.oauth
	if handler == nil && o.Logins != "" {
		handler = storedLogin(o.Logins, s.Name, address)
	}
	through := &carrier{headers: headers, through: http.DefaultTransport}
	return &sdk.StreamableClientTransport{
		Endpoint:     address,
		OAuthHandler: handler,
		HTTPClient:   &http.Client{Transport: through, CheckRedirect: sameOrigin},
		MaxEventSize: maxMessageBytes,
	}, nil
}

func (ses *session) end() {
	ses.once.Do(func() {
		if ses.proc != nil { // closing its input asks it to exit
			ses.proc.close()
		}
		_ = ses.cs.Close()
		ses.stop()
		<-ses.closed
	})
}

func (ses *session) over() bool {
	select {
	case <-ses.closed:
		return true
	default:
		return ses.proc != nil && ses.proc.why() != ""
	}
}

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
