package mcp

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/knowledge_base/userfile"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/tool"
)

// ProjectFile is where a repository lists its servers.
const ProjectFile = ".mcp.json"

// Limits of a configuration.
const (
	maxConfigBytes = 1 << 20
	maxServers     = 64
)

// The default time limits of a server.
const (
	DefaultStartTimeout = 30 * time.Second
	DefaultCallTimeout  = 60 * time.Second
	maxTimeout          = time.Hour
)

// CwdProject as a user's server's Cwd runs it in the task's directory, outside the sandbox: a
// program that loads code from its working directory then runs the project's code.
const CwdProject = "project"

// ErrNoServer: no server of that name is configured.
var ErrNoServer = errors.New("no such MCP server")

// Server describes how one server is reached: a command, or an address.
type Server struct {
	Name string `json:"-"`
	// Type is stdio or http; empty: derived from Command and URL.
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // ${NAME} is the program's own variable
	// Cwd is where a user's own command runs: an absolute directory, or CwdProject. Empty: an
	// empty directory of this program. A project's command always runs in its project.
	Cwd     string            `json:"cwd,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"` // ${NAME}, too
	// Disabled servers are listed and not started.
	Disabled bool `json:"disabled,omitempty"`
	// ReadOnlyTools are the server's own names of tools that change nothing: they need no
	// approval. A server's own claim about that is ignored.
	ReadOnlyTools       []string `json:"readOnlyTools,omitempty"`
	StartTimeoutSeconds int      `json:"startTimeoutSeconds,omitempty"`
	CallTimeoutSeconds  int      `json:"callTimeoutSeconds,omitempty"`

	// Project is the directory whose .mcp.json lists the server; empty: the user's own
	// configuration does.
	Project string `json:"-"`
	// Grants are a project's server's approved permissions beyond its sandbox. No file of the
	// project can set them.
	Grants guard.Grants `json:"-"`
	// Fault is what is wrong with the entry; the server is not started, but others of the file
	// are. Nil: nothing.
	Fault error `json:"-"`
}

// configFile is the format that other programs use, too; unknown fields stay unchanged.
type configFile struct {
	Servers map[string]json.RawMessage `json:"mcpServers"`
}

const configRemedy = `write {"mcpServers": {"NAME": {"command": …}}}`

var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Load reads the servers of a file, sorted by name. A missing file has none; a malformed entry
// has a Fault. project is the directory whose own file it is, empty for the user's.
func Load(path, project string) ([]Server, error) {
	data, err := readConfig(path)
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return nil, err
	}
	var file configFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, userfile.JSON(path, data, nil, err, configRemedy)
	}
	if len(file.Servers) > maxServers {
		return nil, fmt.Errorf("read %s: %d servers, at most %d are possible", path, len(file.Servers), maxServers)
	}
	var servers []Server
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s := Server{}
		fault := json.Unmarshal(file.Servers[name], &s)
		s.Name, s.Project = name, project
		if fault != nil {
			fault = userfile.JSON(path, data, file.Servers[name], fault, "correct the entry or remove it")
		} else if fault = s.Check(); fault != nil {
			fault = fmt.Errorf("%w (%s)", fault, path)
		}
		if fault != nil {
			s.Name, s.Fault = oneLine(name), fault
		}
		servers = append(servers, s)
	}
	return servers, nil
}

func readConfig(path string) ([]byte, error) {
	data, err := durable.ReadFile(path, maxConfigBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read MCP configuration: %w", err)
	}
	return data, nil
}

// Check returns what is wrong with a server's configuration.
func (s Server) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("server %q: %s", s.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case len(s.Name) > 32 || !serverName.MatchString(s.Name) || strings.Contains(quote.Word(s.Name)+"_", "__"):
		// Otherwise its tools' names could begin like another server's, and match a rule about
		// that one.
		return bad("a name has 1 to 32 letters, digits, '_', '-' and '.', no two of '_' and '.' side by side, and " +
			"neither at its end")
	case s.Command == "" && s.URL == "":
		return bad("neither command nor url is set")
	case s.Command != "" && s.URL != "":
		return bad("both command and url are given: one of them")
	case s.Type != "" && s.Type != s.kind() && (s.Type != "streamable-http" || s.URL == ""):
		return bad("type %q: want stdio with command, or http with url", s.Type)
	}
	if s.Project == "" && s.Cwd != "" && s.Cwd != CwdProject && !filepath.IsAbs(s.Cwd) {
		return bad("cwd %q: want %s or an absolute directory", s.Cwd, CwdProject)
	}
	seconds := map[string]int{"startTimeoutSeconds": s.StartTimeoutSeconds, "callTimeoutSeconds": s.CallTimeoutSeconds}
	for key, n := range seconds {
		if n < 0 || n > int(maxTimeout/time.Second) {
			return bad("%s %d: want 1 to %d", key, n, int(maxTimeout/time.Second))
		}
	}
	if s.URL != "" {
		if u, err := url.Parse(s.URL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return bad("url %q: want http:// or https:// and a host", s.URL)
		}
	}
	return nil
}

// confined reports whether the server is a project's program, which runs in a sandbox.
func (s Server) confined() bool { return s.Project != "" && s.URL == "" }

// Variables lists the user's variables that the configuration inserts, sorted: ${NAME}.
func (s Server) Variables() []string {
	texts := append(slices.Collect(maps.Values(s.Env)), s.Args...)
	texts = append(append(texts, slices.Collect(maps.Values(s.Headers))...), s.Command, s.URL)
	var out []string
	for _, m := range variable.FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Beyond describes the confinement of a project's server and its grants, for the user who is
// to approve it.
func (s Server) Beyond() string {
	if !s.confined() {
		return "No program of it runs here."
	}
	var more []string
	for _, name := range s.Variables() {
		more = append(more, "the value of your variable "+name+", which its configuration names")
	}
	return s.Grants.Beyond(more)
}

// ToolPrefix begins the names of the server's tools.
func (s Server) ToolPrefix() string { return tool.MCPPrefix + quote.Word(s.Name) + "__" }

func (s Server) kind() string {
	if s.URL != "" {
		return "http"
	}
	return "stdio"
}

// How describes on one line how a server is reached, for the user who is to approve it:
// variables unexpanded, literal secrets included, since the file has them already.
func (s Server) How() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		parts = append(parts, k+"="+s.Env[k])
	}
	if s.URL != "" {
		parts = append(parts, s.URL)
		for _, k := range slices.Sorted(maps.Keys(s.Headers)) {
			parts = append(parts, "with "+k+": "+s.Headers[k])
		}
	} else {
		parts = append(append(parts, s.Command), s.Args...)
	}
	for i, p := range parts {
		if strings.ContainsAny(p, " \t\n'\"") && !strings.HasPrefix(p, "with ") {
			parts[i] = fmt.Sprintf("%q", p)
		}
	}
	return strings.Join(parts, " ")
}

func (s Server) startTimeout() time.Duration {
	return cmp.Or(time.Duration(s.StartTimeoutSeconds)*time.Second, DefaultStartTimeout)
}

func (s Server) callTimeout() time.Duration {
	return cmp.Or(time.Duration(s.CallTimeoutSeconds)*time.Second, DefaultCallTimeout)
}

// confinedMark begins the hash of a server that runs in a sandbox: approvals from before there
// was one must be renewed.
const confinedMark = "in a sandbox, 1\n"

// hash covers everything that decides what is run: the configuration, the directory, and the
// programs of that directory that the command runs or names.
func (s Server) hash() (string, error) {
	h := sha256.New()
	if s.confined() {
		io.WriteString(h, confinedMark)
	}
	_ = json.NewEncoder(h).Encode(struct { // texts and numbers always encode
		Dir, Name string
		Server    Server
	}{s.Project, s.Name, s})
	words := append([]string{s.Command}, s.Args...)
	if err := consent.HashPrograms(h, s.Project, words, cmp.Or(s.Env["PATH"], os.Getenv("PATH"))); err != nil {
		return "", fmt.Errorf("server %s: %w", s.Name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// expand replaces variables: ${NAME}, or ${NAME:-default}. An unset name is an error.
func expand(text string, getenv func(string) string) (string, error) {
	var missing error
	out := variable.ReplaceAllStringFunc(text, func(m string) string {
		parts := variable.FindStringSubmatch(m)
		if v := getenv(parts[1]); v != "" {
			return v
		}
		if parts[2] != "" {
			return strings.TrimPrefix(parts[2], ":-")
		}
		missing = fmt.Errorf("the variable %s is not set", parts[1])
		return ""
	})
	return out, missing
}

func expandAll(in map[string]string, getenv func(string) string) (map[string]string, error) {
	out := make(map[string]string, len(in))
	for k, v := range in {
		text, err := expand(v, getenv)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		out[k] = text
	}
	return out, nil
}

// Put writes a server into a user's file, replacing one of that name. Other content stays.
func Put(path string, s Server) error {
	if err := s.Check(); err != nil {
		return err
	}
	data, _ := json.Marshal(s) // texts and numbers always encode
	return edit(path, func(servers map[string]json.RawMessage) error {
		servers[s.Name] = data
		return nil
	})
}

// Remove removes a server from a user's file. ErrNoServer: there was none.
func Remove(path, name string) error {
	return edit(path, func(servers map[string]json.RawMessage) error {
		if _, ok := servers[name]; !ok {
			return fmt.Errorf("%w: %s is not in %s", ErrNoServer, name, path)
		}
		delete(servers, name)
		return nil
	})
}

func edit(path string, change func(map[string]json.RawMessage) error) error {
	data, err := readConfig(path)
	if err != nil {
		return err
	}
	file := make(map[string]json.RawMessage)
	if len(bytes.TrimSpace(data)) > 0 {
		if err := json.Unmarshal(data, &file); err != nil {
			return userfile.JSON(path, data, nil, err, configRemedy)
		}
	}
	servers := make(map[string]json.RawMessage)
	if raw, ok := file["mcpServers"]; ok {
		if err := json.Unmarshal(raw, &servers); err != nil {
			return userfile.JSON(path, data, raw, err, configRemedy)
		}
	}
	if err := change(servers); err != nil {
		return err
	}
	file["mcpServers"], _ = json.Marshal(servers) // what was read as JSON always encodes
	out, _ := json.MarshalIndent(file, "", "  ")
	if err := durable.Replace(path, append(out, '\n'), 0o600); err != nil {
		return fmt.Errorf("write MCP configuration: %w", err)
	}
	return nil
}
