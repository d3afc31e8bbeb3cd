//go:build unix

// Package mcp gives the agent the tools of MCP servers: programs it starts and
// talks to over their standard input and output, and services it reaches over
// streamable HTTP. It is the one place that knows
// github.com/modelcontextprotocol/go-sdk.
//
// A server is foreign. What it says of its tools is escaped until it is
// visible, its results count as evidence from outside, its process gets an
// environment without secrets and is ended whole. One that is dead, slow or
// wrong costs its own tools and nothing else. A server that a repository brings
// (.mcp.json) is started only when a user approved its command, and its
// tools are offered only when a user approved what it says of them: either
// one changed, and it is asked about again. Its program runs in a sandbox, with
// what was granted with the approval.
package mcp
