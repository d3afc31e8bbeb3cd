// Package mcp offers the agent the tools of MCP servers: programs that it starts and connects
// to over their standard input and output, and services over streamable HTTP. It is the only
// package that uses github.com/modelcontextprotocol/go-sdk.
//
// A server is foreign. Its descriptions are escaped until they are visible, its results count
// as evidence from outside, its process gets an environment without secrets and is ended with
// all its children. A dead, slow or faulty server loses its own tools only. A server that a
// repository brings (.mcp.json) is started only if a user approved its command, and its tools
// are offered only if a user approved their descriptions; a change of either needs a new
// approval. Its program runs in a sandbox with the approved grants. A user's own server runs
// outside the sandbox and away from the project's code, in an empty directory (stdio.go).
package mcp
