// Package page is the local web page: the review of knowledge cards, and the
// timeline of a task. The server renders HTML; htmx, embedded, updates parts
// of a page. Everything but search as you type and the live timeline works
// without scripts.
//
// # Access
//
// The server listens on loopback addresses only. The printed address holds a
// token, which is exchanged for a cookie; without the cookie, only the style
// sheets and the scripts are served. A request's Host must be the server's own
// address, so that a foreign name that resolves to this machine is refused. A
// request that changes something must have the server's Origin.
//
// # Content
//
// A page shows text of models, tools, files and users. Templates escape it as
// HTML; term.Clean removes characters that reverse a text or act on a terminal.
// A page holds no inline script or style, and the content security policy
// blocks them.
package page
