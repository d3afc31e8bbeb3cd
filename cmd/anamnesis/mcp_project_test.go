//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// projectScript is an agent that uses a project's servers, which are held in.
const projectScript = `
turns:
  - expect:
      - tools: [mcp__every__echo, mcp__files__write_file, mcp__mem__create_entities]
    calls:
      - {name: mcp__every__echo, arguments: {message: "over stdio"}}
      - {name: mcp__files__write_file, arguments: {path: note.txt, content: "from a server\n"}}
      - {name: mcp__files__list_directory, arguments: {path: HOME}}
      - {name: mcp__mem__create_entities, arguments: {entities: [{name: Mnemosyne, entityType: titan, observations: [remembers]}]}}
      - {name: mcp__mem__read_graph, arguments: {}}
  - expect:
      - {contains: ["Echo: over stdio", "Successfully wrote", "Mnemosyne"]}
      - {on: all-joined, lacks: "of-the-user.txt"}
    reply: All three were used.
`

// TestMCPProjectServers runs real servers that a project brings in their sandbox.
// They are installed outside the project: reading that is granted.
func TestMCPProjectServers(t *testing.T) {
	world, user := t.TempDir(), t.TempDir()
	home := filepath.Join(user, "state")
	if err := os.WriteFile(filepath.Join(user, "of-the-user.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"every": map[string]any{"command": mcpServer(t, "everything")},
		"files": map[string]any{"command": mcpServer(t, "filesystem"), "args": []string{world, user}},
		"mem":   map[string]any{"command": mcpServer(t, "memory"), "env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(world, "memory.json")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "agent.yaml")
	for path, text := range map[string]string{filepath.Join(world, ".mcp.json"): string(config), script: strings.ReplaceAll(projectScript, "HOME", user)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	grants := []string{"--read", filepath.Dir(os.Getenv("ANAMNESIS_MCP_SERVERS"))}
	if node, err := exec.LookPath("node"); err == nil {
		if real, err := filepath.EvalSymlinks(node); err == nil { // its installation: prefix/bin/node
			grants = append(grants, "--read", filepath.Dir(filepath.Dir(real)))
		}
	}
	env := []string{"ANAMNESIS_HOME=" + home, "HOME=" + user}
	for _, name := range []string{"every", "files", "mem"} {
		out, err := program(t.Context(), env,
			append([]string{"mcp", "approve", name, "--dir", world, "--yes"}, grants...)...)
		if err != nil || !strings.Contains(out, "approved "+name) {
			t.Fatalf("approve %s: %v\n%s", name, err, out)
		}
	}
	out, err := program(t.Context(), env, "run", "--dir", world, "--model", "script:"+script, "--approval", "auto",
		"--task", "t", "--tools-wait", "3m", "Use the servers.")
	if err != nil || !strings.Contains(out, "All three were used.") {
		t.Fatalf("%v\n%s", err, out)
	}
	if data, err := os.ReadFile(filepath.Join(world, "note.txt")); string(data) != "from a server\n" {
		t.Errorf("note.txt: %q, %v", data, err)
	}
}
