package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/cmd/internal/mcpserver"
)

var nightly = flag.Bool("nightly", false, "run what .ci/nightly runs")

// TestProtocols speaks each protocol that agents were seen to speak, line by line: the
// two with a handshake, and the stateless one, in which each request says who asks.
func TestProtocols(t *testing.T) {
	p := newPlace(t)
	for _, tt := range []struct{ version, begin string }{
		{"2025-06-18", "initialize"}, {"2025-11-25", "initialize"}, {"2026-07-28", "server/discover"},
	} {
		t.Run(tt.version, func(t *testing.T) {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- mcpserver.New(p.svc, p.dir,
					func(name string) string { return p.env[name] }).Run(context.Background(), inR, outW, "test")
			}()
			out := bufio.NewScanner(outR)
			ask := func(id int, method, params string) (r struct {
				ProtocolVersion   string
				SupportedVersions []string
				Instructions      string
				Tools             []struct{ Name string }
				Content           []struct{ Text string }
			}) {
				t.Helper()
				client := `"clientInfo":{"name":"c","version":"1"}`
				switch {
				case tt.begin == "server/discover":
					params = strings.TrimPrefix(params+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"`+
						tt.version+
						`","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`, ",")
				case method == "initialize":
					params = `"protocolVersion":"` + tt.version + `","capabilities":{},` + client
				}
				if _, err := fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`+"\n", id, method, params); err != nil {
					t.Fatal(err)
				}
				for out.Scan() {
					var m struct {
						ID     int
						Result json.RawMessage
						Error  any
					}
					if err := json.Unmarshal(out.Bytes(), &m); err != nil || m.Error != nil {
						t.Fatalf("%s: %s", method, out.Text())
					}
					if m.ID == id {
						if err := json.Unmarshal(m.Result, &r); err != nil {
							t.Fatal(err)
						}
						return r
					}
				}
				t.Fatalf("%s was not answered", method)
				return r
			}
			begun := ask(1, tt.begin, "")
			if begun.ProtocolVersion != tt.version &&
				!strings.Contains(strings.Join(begun.SupportedVersions, " "), tt.version) ||
				!strings.Contains(begun.Instructions, "jump_to_step") {
				t.Errorf("begun with %+v", begun)
			}
			if tt.begin == "initialize" {
				fmt.Fprintln(inW, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			}
			if list := ask(2, "tools/list", ""); len(list.Tools) != 7 {
				t.Errorf("tools: %+v", list.Tools)
			}
			if line := ask(3, "tools/call", `"name":"timeline","arguments":{}`); len(line.Content) != 1 ||
				!strings.Contains(line.Content[0].Text, p.task) {
				t.Errorf("timeline: %+v", line)
			}
			inW.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// programs returns the folder of the inspector and the conformance suite, which
// .ci/nightly installs.
func programs(t *testing.T) string {
	t.Helper()
	if !*nightly {
		t.Skip("NOT RUN: .ci/nightly runs it, or -nightly")
	}
	dir := os.Getenv("ANAMNESIS_MCP_TOOLS")
	if dir == "" {
		t.Fatal("ANAMNESIS_MCP_TOOLS is not set: .ci/nightly installs the inspector and the conformance suite from npm")
	}
	return dir
}

// TestConformance runs the protocol's own conformance scenarios. The server speaks over
// standard input; here it stands behind the library's HTTP transport. The baseline lists
// the scenarios that ask for a server made for the suite: one that passes all the same,
// or another that fails, fails the test.
func TestConformance(t *testing.T) {
	dir := programs(t)
	p := newPlace(t)
	server := mcpserver.New(p.svc, p.dir, func(name string) string { return p.env[name] }).Offer("test")
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	out, err := exec.Command(filepath.Join(dir, "conformance"), "server", "--url", web.URL, "--suite", "all",
		"--expected-failures", filepath.Join("testdata", "conformance.yaml")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestInspector asks the built program with the protocol's inspector.
func TestInspector(t *testing.T) {
	dir := programs(t)
	p := newPlace(t)
	bin := filepath.Join(t.TempDir(), "anamnesis")
	if out, err := exec.Command("go", "build", "-o", bin, "anamnesis/cmd/anamnesis").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, tt := range []struct {
		args string
		want string
	}{
		{"--method initialize", "jump_to_step"},
		{"--method tools/list --strict", "show_operation"},
		{"--method prompts/list", "cards"},
		{"--method prompts/get --prompt-name jump", "call jump_to_step"},
		{"--method tools/call --tool-name timeline", p.task},
		{"--method tools/call --tool-name diff --tool-arg from=1 to=2", "+two"},
		{"--method tools/call --tool-name jump_to_step --tool-arg step=1 reason=r dry_run=true", "step 1"},
	} {
		cmd := exec.Command(filepath.Join(dir, "mcp-inspector"),
			append([]string{
				"--cli", "-e", "HOME=" + p.env["HOME"], "-e", "ANAMNESIS_HOME=" + p.env["ANAMNESIS_HOME"], bin, "mcp",
				"serve",
			}, strings.Fields(tt.args)...)...)
		cmd.Dir = p.dir
		cmd.Env = append(os.Environ(), "HOME="+p.env["HOME"]) // its own files
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), tt.want) || strings.Contains(string(out), "Warning: tool") {
			t.Errorf("%s: %v\n%s", tt.args, err, out)
		}
	}
}
