// Package page is the local web page: the review of knowledge cards, and the
// timeline of a task. HTML is made on the server; htmx, embedded, brings parts
// of a page up to date. Everything but search as one types and the live
// timeline works without script.
//
// # Who is let in
//
// The server listens on loopback addresses only. The address that is printed
// holds a token, which is exchanged for a cookie; without it nothing but the
// style sheet and the scripts is answered. A request must name the server's own
// address as its Host, so that no foreign name that is made to resolve to this
// machine reaches it, and one that changes something must come from a page of
// the server's own, by its Origin.
//
// # What is shown
//
// All that a page shows comes from models, tools, files and people. Templates
// escape it as HTML; term.Clean takes what could turn a text around or act on a
// terminal it is copied to. No script and no style stands in a page, and the
// content security policy lets none run.
package page
