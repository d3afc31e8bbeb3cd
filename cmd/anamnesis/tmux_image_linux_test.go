package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSeatImages: the path of a dropped image, and one from the clipboard, are attached to the message. The screen
// shows what was attached.
func TestSeatImages(t *testing.T) {
	t.Parallel()
	d := onScreen(t, 100, 40, `turns:
  - expect: [{contains: "/w/dot.png: image/png, 6x4 pixels"}]
    reply: A dot.
  - expect: [{contains: "[image 1: "}, {contains: "6x4 pixels"}]
    reply: From the clipboard.
`)
	writePNG(t, filepath.Join(d.dir, "w", "dot.png"), 6, 4)
	d.types("anamnesis --model script:../words.yaml\n")
	d.sees("\n>")
	d.types("/paste\n")
	d.sees("! /paste: ") // no clipboard, or no image in it
	d.pastes(filepath.Join(d.dir, "w", "dot.png"))
	d.types(" what is it?\n")
	d.answered("  [image 1: ", "6x4 pixels", "A dot.")
	d.write("wl-paste", "#!/bin/sh\ncat "+filepath.Join(d.dir, "w", "dot.png")+"\n")
	if err := os.Chmod(filepath.Join(d.dir, "wl-paste"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.press("C-v")
	d.sees("> " + d.dir + "/anamnesis-paste-")
	d.types("and this?\n")
	d.answered("From the clipboard.")
}

// TestSeatMCP: a result of an MCP server is folded, /out shows it whole, and a prompt of the server is a command.
func TestSeatMCP(t *testing.T) {
	t.Parallel()
	d := onScreen(t, 100, 65, `turns:
  - calls: [{name: mcp__docs__rows, arguments: {of: all}}]
  - reply: Forty rows.
  - expect: [{contains: "[prompt review of the MCP server docs]\nReview it well."}]
    reply: Reviewed.
`)
	d.write("server.sh", `say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
	id=$(expr "$line" : '.*"id":\([0-9]*\)')
	case $line in
	*'"initialize"'*) say '{"protocolVersion":"2025-06-18","serverInfo":{"name":"docs","version":"1"},"capabilities":{"prompts":{},"tools":{}}}' ;;
	*'"notifications/'*) ;;
	*'"tools/list"'*) say '{"tools":[{"name":"rows","inputSchema":{"type":"object"}}]}' ;;
	*'"tools/call"'*) say '{"content":[{"type":"text","text":"'"$(seq -f 'row %g' -s '\n' 40)"'"}]}' ;;
	*'"prompts/list"'*) say '{"prompts":[{"name":"review"}]}' ;;
	*'"prompts/get"'*) say '{"messages":[{"role":"user","content":{"type":"text","text":"Review it well."}}]}' ;;
	*'"ping"'*) say '{}' ;;
	*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
	esac
done
`)
	d.types("anamnesis mcp add docs -- sh " + filepath.Join(d.dir, "server.sh") +
		"; clear; anamnesis --model script:../words.yaml --approval auto\n")
	d.sees("\n>")
	d.types("Count.\n")
	screen := d.sees("● mcp__docs__rows", "row 1\n", "row 40\n", " in all: /out 1", "Forty rows.")
	if strings.Contains(screen, "row 20") {
		t.Errorf("the result is not folded:\n%s", screen)
	}
	d.answered("Forty rows.")
	d.types("/out 1\n")
	d.sees("$ mcp__docs__rows {\"of\":\"all\"}", "row 20\n")
	d.types("/docs:rewiev\n")
	d.sees("MCP server docs: it has no prompt rewiev; it has: review", "\n> /docs:rewiev\n─")
	d.press("C-u")
	d.types("/docs:review\n")
	d.answered("Reviewed.")
}
