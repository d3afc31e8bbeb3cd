package sessions_test

import (
	"encoding/json"
	"testing"

	"anamnesis/orchestrator/sessions"
)

// TestResultText: of any form in which hooks and editors get a tool's result, the text is read as the
// model is shown it. None is an object in JSON.
func TestResultText(t *testing.T) {
	for name, tt := range map[string]struct{ raw, want string }{
		"a text":           {`"done"`, "done"},
		"nothing":          {``, ""},
		"null":             {`null`, ""},
		"parts":            {`[{"type":"text","text":"a"},{"type":"image","source":{"data":"QUJD"}},{"type":"text","text":"b"}]`, "a\nb"},
		"Bash":             {`{"stdout":"a","stderr":"b","interrupted":false}`, "a\nb"},
		"Bash behind":      {`{"stdout":"","stderr":"","interrupted":false,"backgroundTaskId":"b1"}`, "Command running in background with ID: b1"},
		"Read":             {`{"type":"text","file":{"filePath":"/p/a","content":"x\ny\n","numLines":3,"startLine":7,"totalLines":9}}`, "7\tx\n8\ty\n9\t"},
		"Read an image":    {`{"type":"image","file":{"base64":"QUJD","type":"image/png"}}`, ""},
		"Edit":             {`{"filePath":"/p/a","oldString":"x","newString":"y","originalFile":"x","structuredPatch":[{"oldStart":1}]}`, "The file /p/a has been updated successfully."},
		"Write":            {`{"type":"create","filePath":"/p/a","content":"x","structuredPatch":[]}`, "File created successfully at: /p/a"},
		"Grep":             {`{"mode":"content","numFiles":0,"filenames":[],"content":"a:1:x","numLines":1}`, "a:1:x"},
		"Grep for files":   {`{"mode":"files_with_matches","filenames":["a","b"],"numFiles":2}`, "a\nb"},
		"Glob of none":     {`{"filenames":[],"durationMs":3,"numFiles":0,"truncated":false}`, "No files found"},
		"a subagent":       {`{"status":"completed","content":[{"type":"text","text":"It is b."}],"totalTokens":9}`, "It is b."},
		"WebFetch":         {`{"bytes":9,"code":200,"codeText":"OK","result":"A page.","url":"https://example.org"}`, "A page."},
		"an unknown tool":  {`{"newTodos":[{"content":"a","status":"done"},{"content":"b"}],"n":2}`, "n: 2\ncontent: a\nstatus: done\ncontent: b"},
		"an odd field":     {`{"stdout":"a","stderr":5}`, "a"},
		"a server's":       {`{"content":[{"type":"text","text":"a"}],"structuredContent":{"b":1}}`, "a"},
		"nested":           {`{"result":{"content":[{"type":"text","text":"a"}]},"error":null}`, "a"},
		"Gemini's":         {`{"llmContent":"a","returnDisplay":{"fileDiff":"x"}}`, "a"},
		"Gemini's parts":   {`{"llmContent":[{"text":"a"},{"inlineData":{"data":"QUJD"}}]}`, "a"},
		"Gemini's part":    {`{"llmContent":{"text":"a"}}`, "a"},
		"opencode's":       {`{"output":"a","metadata":{"exit":1}}`, "a"},
		"a list of others": {`["a",{"b":1}]`, "a\nb: 1"},
	} {
		if got, failed := sessions.ResultText(json.RawMessage(tt.raw)); got != tt.want || failed {
			t.Errorf("%s: %q, failed %v, want %q", name, got, failed, tt.want)
		}
	}
	for name, tt := range map[string]struct{ raw, want string }{
		"a server's":    {`{"content":[{"type":"text","text":"no such step"}],"isError":true}`, "no such step"},
		"an editor's":   {`{"result":null,"error":{"message":"denied"}}`, "denied"},
		"Gemini's":      {`{"llmContent":"File not found","error":{"message":"File not found: a","type":"file_not_found"}}`, "File not found"},
		"Gemini's bare": {`{"llmContent":"","error":{"message":"no"}}`, "no"},
	} {
		if got, failed := sessions.ResultText(json.RawMessage(tt.raw)); got != tt.want || !failed {
			t.Errorf("%s: %q, failed %v, want %q and failed", name, got, failed, tt.want)
		}
	}
}
