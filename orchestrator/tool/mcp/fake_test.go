package mcp

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"strings"
	"testing"
	"time"

	"anamnesis/orchestrator/guard"
)

// fakeMark makes the test binary an MCP server that misbehaves in a way: what
// servers that work do is asked of real ones, in cmd/anamnesis.
const fakeMark = "ANAMNESIS_TEST_MCP"

// noNamespaces has the test binary give up user namespaces first.
const noNamespaces = "ANAMNESIS_TEST_NO_NAMESPACES"

func TestMain(m *testing.M) {
	guard.SuperviseMain()
	if how := os.Getenv(fakeMark); how != "" {
		fakeServer(how)
		os.Exit(0)
	}
	if os.Getenv(noNamespaces) != "" {
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

type fakeRequest struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string `json:"name"`
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// fakeServer answers line by line, by hand, so that it can say what no library
// would.
func fakeServer(how string) {
	if how == "exit" {
		fmt.Fprintln(os.Stderr, "starting\nno licence found")
		os.Exit(7)
	}
	if how == "talks" || how == "talks only" {
		say("Listening on the standard input …\n\n{debug: [1, 2]}")
	}
	tools := []string{"mixed", "die", "die_once", "hang", "slow", "long", "grow", "env", "pid", "dies", "asks", "odd"}
	lists := 0
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var r fakeRequest
		if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil || how == "hang" || how == "talks only" {
			continue
		}
		switch r.Method {
		case "server/discover":
			if how != "stateless" {
				say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, r.ID)
				continue
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`, r.ID)
		case "initialize":
			info := `"serverInfo":{"name":"fake","version":"1"},`
			if how == "noinfo" {
				info = ""
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18",%s"capabilities":{"tools":{"listChanged":true}}}}`, r.ID, info)
		case "tools/list":
			if lists++; how == "lists nothing" || how == "lists once" && lists > 1 {
				continue
			}
			if how == "many" {
				tools = make([]string, maxTools+1)
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, r.ID, fakeTools(tools))
		case "tools/call":
			if r.Params.Name == "grow" {
				tools = append(tools, "grown")
				say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
			fakeCall(r)
		case "ping":
			say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, r.ID)
		default:
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, r.ID)
		}
	}
}

func fakeTools(names []string) string {
	var out []string
	for _, n := range names {
		hints := ""
		if n == "die_once" || n == "dies" {
			hints = `,"annotations":{"idempotentHint":true,"readOnlyHint":true}`
		}
		out = append(out, fmt.Sprintf(`{"name":%q,"description":"Tool \u200b\u001b[31m%s \udb40\udc41","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"x":{"type":"string","description":"an\u202e x"}}}%s}`, n, n, hints))
	}
	return strings.Join(out, ",")
}

func fakeCall(r fakeRequest) {
	if os.Getenv(fakeMark) == "talks" {
		say("calling %s\n[not JSON", r.Params.Name)
	}
	text := func(s string) {
		data, _ := json.Marshal(s)
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`, r.ID, data)
	}
	switch r.Params.Name {
	case "mixed":
		var pixel bytes.Buffer
		if err := png.Encode(&pixel, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
			panic(err)
		}
		data := base64.StdEncoding.EncodeToString(pixel.Bytes())
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"words"},{"type":"image","mimeType":"image/png","data":%q},`+
			`{"type":"audio","mimeType":"audio/wav","data":"AAAA"},{"type":"resource","resource":{"uri":"f://a","mimeType":"text/plain","text":"inside"}},`+
			`{"type":"resource","resource":{"uri":"f://b","mimeType":"application/zip","blob":"UEsDBA=="}},`+
			`{"type":"resource_link","uri":"f://c","name":"see"}]}}`, r.ID, data)
	case "die":
		os.Exit(3)
	case "dies": // each time, and leaves a line
		f, _ := os.OpenFile(os.Getenv("FAKE_MARK"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		fmt.Fprintln(f, "called")
		os.Exit(3)
	case "die_once":
		mark := os.Getenv("FAKE_MARK")
		if _, err := os.Stat(mark); err != nil {
			_ = os.WriteFile(mark, nil, 0o600)
			os.Exit(3)
		}
		text("the second time")
	case "hang":
	case "odd":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"image","mimeType":"image/png","data":"%%%%"}]}}`,
			r.ID)
	case "asks":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","inputRequests":{}}}`, r.ID)
	case "slow":
		for i := range 8 {
			time.Sleep(500 * time.Millisecond) // the thing tested is time
			say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":8,"message":"half a second"}}`, r.Params.Meta.Token, i+1)
		}
		text("slow and sure")
	case "long":
		text("HEAD" + strings.Repeat("é", 3*MaxResultRunes) + "TAIL")
	case "env":
		text(strings.Join(os.Environ(), "\n"))
	case "pid":
		text(fmt.Sprint(os.Getpid()))
	default:
		text("called " + r.Params.Name)
	}
}
