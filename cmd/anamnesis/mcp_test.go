//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// mcpServer returns the program of a server of the npm scope @modelcontextprotocol.
func mcpServer(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(counterpart(t, "ANAMNESIS_MCP_SERVERS",
		"server-everything, server-filesystem and server-memory of the npm scope @modelcontextprotocol"), "mcp-server-"+name)
}

// startHTTP starts server-everything over streamable HTTP and returns its
// address. A port that was taken meanwhile is tried again with another.
func startHTTP(t *testing.T) string {
	t.Helper()
	for range 5 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		cmd := exec.Command(mcpServer(t, "everything"), "streamableHttp")
		cmd.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		sc := bufio.NewScanner(stderr)
		for sc.Scan() {
			if strings.Contains(sc.Text(), "listening on port") {
				go func() {
					for sc.Scan() { // keep its pipe empty
					}
				}()
				return fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
			}
		}
	}
	t.Fatal("server-everything did not start over HTTP")
	return ""
}

// mcpHome is a home whose user has configured these servers.
func mcpHome(t *testing.T, servers map[string]any) string {
	t.Helper()
	home := t.TempDir()
	data, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "mcp.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

// returned returns the results of a task's calls of a tool, in order.
func returned(t *testing.T, home, task, name string) []*op.ToolReturned {
	t.Helper()
	h, err := taskdir.FindHome(func(k string) string {
		return map[string]string{"ANAMNESIS_HOME": home, "HOME": home}[k]
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []*op.ToolReturned
	err = taskdir.EachOp(h, task, func(o op.Op) error {
		if r, ok := o.Body.(*op.ToolReturned); ok && r.Name == name {
			out = append(out, r)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// mcpScript is an agent that uses four servers; %s is the mark by which it
// finds the memory server to kill, in a form that does not find the command
// itself.
const mcpScript = `
turns:
  - expect:
      - tools: [mcp__every__echo, mcp__files__write_file, mcp__mem__create_entities, mcp__web__get-sum]
      - contains: "The MCP server hangs is not there: it did not answer in time"
    calls:
      - {name: mcp__every__echo, arguments: {message: "over stdio"}}
      - {name: mcp__every__get-tiny-image, arguments: {}}
      - {name: mcp__every__get-resource-links, arguments: {count: 2}}
      - {name: mcp__every__trigger-long-running-operation, arguments: {duration: 1, steps: 2}}
      - {name: mcp__files__write_file, arguments: {path: note.txt, content: "from a server\n"}}
      - {name: mcp__files__read_text_file, arguments: {path: /etc/passwd}}
      - {name: mcp__mem__create_entities, arguments: {entities: [{name: Mnemosyne, entityType: titan, observations: [remembers]}]}}
      - {name: mcp__web__echo, arguments: {message: "over HTTP"}}
      - {name: mcp__web__get-sum, arguments: {a: 20, b: 22}}
  - expect:
      - {contains: ["Echo: over stdio", "[image 1: image/png", "resource link: ", "Long running operation completed", "Successfully wrote", "Access denied", "Echo: over HTTP", "42"]}
    calls:
      - {name: Bash, arguments: {command: "pkill -KILL -f '%s' && echo killed"}}
  - expect:
      - {on: result, contains: killed}
    calls:
      - {name: mcp__mem__read_graph, arguments: {}}
      - {name: mcp__every__echo, arguments: {message: still there}}
  - expect:
      - {contains: ["Mnemosyne", "Echo: still there"]}
    reply: All four were used.
`

// TestMCPServers runs the built program with real servers: three over stdio,
// one over HTTP. One is killed in the middle, one hangs at its start.
func TestMCPServers(t *testing.T) {
	world := t.TempDir()
	mark := fmt.Sprintf("mark-of-%d", os.Getpid())
	memory := filepath.Join(t.TempDir(), "memory.json")
	home := mcpHome(t, map[string]any{
		"every": map[string]any{"command": mcpServer(t, "everything")},
		"files": map[string]any{"command": mcpServer(t, "filesystem"), "args": []string{world}},
		"mem":   map[string]any{"command": mcpServer(t, "memory"), "args": []string{mark}, "env": map[string]string{"MEMORY_FILE_PATH": memory}},
		"web":   map[string]any{"type": "http", "url": startHTTP(t)},
		"hangs": map[string]any{"command": "sleep", "args": []string{"100000"}, "startTimeoutSeconds": 1},
	})
	script := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(script, fmt.Appendf(nil, mcpScript, "["+mark[:1]+"]"+mark[1:]), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := program(t.Context(), []string{"ANAMNESIS_HOME=" + home}, "run", "--dir", world, "--model",
		"script:"+script,
		"--approval", "auto", "--sandbox", "off" /* it keeps commands from the servers' processes */, "--task", "t", "--tools-wait", "3m", "Use the servers.")
	if err != nil || !strings.Contains(out, "All four were used.") {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(out, "… mcp__every__trigger-long-running-operation") {
		t.Errorf("no progress is shown:\n%s", out)
	}
	if data, err := os.ReadFile(filepath.Join(world, "note.txt")); string(data) != "from a server\n" {
		t.Errorf("note.txt: %q, %v", data, err)
	}
	image := returned(t, home, "t", "mcp__every__get-tiny-image")
	if len(image) != 1 || len(image[0].Parts) != 1 || image[0].Parts[0].MIME != "image/png" ||
		!strings.HasPrefix(string(image[0].Parts[0].Base64), "\x89PNG") {
		t.Errorf("the image is not in the stream: %+v", image)
	}
	if !image[0].Network {
		t.Error("a server's result does not count as evidence from outside")
	}
	if left := commandLines(mark); len(left) > 0 {
		t.Errorf("servers are alive after the run: %q", left)
	}
}
