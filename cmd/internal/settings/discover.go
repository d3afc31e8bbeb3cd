package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/model/openai"
)

// Limits of the search for a server.
const (
	probeTimeout = 400 * time.Millisecond
	maxListBytes = 1 << 20
	maxOffered   = 9 // models of one server
)

// Server is a program that serves models on this machine.
type Server struct{ Name, Address string }

// LocalServers are the usual addresses of local model servers, and that of $OLLAMA_HOST.
func LocalServers(getenv func(string) string) []Server {
	return []Server{
		{"Ollama", openai.OllamaAddress(getenv(openai.OllamaEnv))},
		{"LM Studio", "http://127.0.0.1:1234"},
		{"llama.cpp", "http://127.0.0.1:8080"},
		{"vLLM", "http://127.0.0.1:8000"},
	}
}

// provider is a service with an OpenAI-compatible address, by the variable that
// usually holds its key.
type provider struct{ env, name, address string }

func providers() []provider {
	return []provider{
		{"OPENAI_API_KEY", "OpenAI", ""},
		{"ANTHROPIC_API_KEY", "Anthropic", "https://api.anthropic.com/v1"},
		{"GEMINI_API_KEY", "Google Gemini", "https://generativelanguage.googleapis.com/v1beta/openai"},
		{"OPENROUTER_API_KEY", "OpenRouter", "https://openrouter.ai/api/v1"},
		{"DEEPSEEK_API_KEY", "DeepSeek", "https://api.deepseek.com/v1"},
		{"MOONSHOT_API_KEY", "Moonshot", "https://api.moonshot.ai/v1"},
		{"MISTRAL_API_KEY", "Mistral", "https://api.mistral.ai/v1"},
		{"GROQ_API_KEY", "Groq", "https://api.groq.com/openai/v1"},
		{"XAI_API_KEY", "xAI", "https://api.x.ai/v1"},
	}
}

// Offer is a model found on this machine: a key in the environment, or a local server.
type Offer struct {
	What  string
	lines []string // of config.yaml that use it; none: it has no model yet
}

// NeedsModel reports whether the model's name is unknown.
func (o Offer) NeedsModel() bool { return len(o.lines) > 0 && o.lines[0] == unnamed }

// unnamed is the line in which the user must name a model.
const unnamed = "model: NAME"

// Offers returns what was found in the environment, and the local servers that answer.
func Offers(ctx context.Context, getenv func(string) string, servers []Server) []Offer {
	var out []Offer
	for _, p := range providers() {
		if getenv(p.env) == "" {
			continue
		}
		lines := []string{unnamed}
		if p.address != "" {
			lines = append(lines, "base_url: "+p.address, "key_env: "+p.env)
		}
		out = append(out, Offer{fmt.Sprintf("%s: $%s is set", p.name, p.env), lines})
	}
	for i, models := range askServers(ctx, servers) {
		switch s := servers[i]; {
		case models == nil:
		case len(models) == 0:
			out = append(out, Offer{fmt.Sprintf("%s answers at %s and has no model yet", s.Name, s.Address), nil})
		default:
			for _, name := range models[:min(len(models), maxOffered)] {
				out = append(out, Offer{fmt.Sprintf("%s at %s: %s", s.Name, s.Address, name),
					[]string{"model: " + name, "base_url: " + s.Address + "/v1"}})
			}
			if more := len(models) - maxOffered; more > 0 {
				out[len(out)-1].What += fmt.Sprintf(" (%d more are not listed)", more)
			}
		}
	}
	return out
}

// Welcome explains what a user without a model can do, with the lines of config.yaml for each
// offer. flag is the model that a flag names.
func (s *Settings) Welcome(offers []Offer, flag string) string {
	what, userFile := "No model is configured", s.UserFile
	if v := s.value("model"); flag != "" {
		what = fmt.Sprintf("No server is known for %s, the model of --model", flag)
	} else if v.Text != "" {
		what = fmt.Sprintf("No server is known for %s, the model of %s", v.Text, v.Origin)
	}
	if what = term.Line(what, 400); len(offers) == 0 {
		return fmt.Sprintf("%s.\nNeither an API key nor a local server was found.\n\n"+
			"  Export a key such as OPENAI_API_KEY, or start Ollama, LM Studio, llama.cpp or vLLM.\n"+
			"  Then write 'model: NAME' into %s, or add --model NAME.\n\n"+
			"  'anamnesis demo' shows the program without a model.\n", what, userFile)
	}
	var b strings.Builder
	for i, o := range offers {
		fmt.Fprintf(&b, "\n  %d  %s\n", i+1, o.What)
		for _, line := range o.lines {
			fmt.Fprintf(&b, "       %s\n", line)
		}
	}
	return fmt.Sprintf("%s. Found on this machine, with the lines of\n%s that use it:\n%s\n"+
		"  'anamnesis config' shows all settings; 'anamnesis demo' needs no model.\n", what, userFile, b.String())
}

var ErrName = errors.New("is not the name of a model")

// Save writes the lines of the offer to a new configuration file. model is used if the offer
// names none.
func (o Offer) Save(path, model string) error {
	lines := slices.Clone(o.lines)
	if len(lines) == 0 {
		return fmt.Errorf("%s: download one with its own command first", o.What)
	}
	if o.NeedsModel() {
		if model == "" || strings.ContainsAny(model, " #\"'\n") {
			return fmt.Errorf("%q %w", model, ErrName)
		}
		lines[0] = "model: " + model
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and is left as it is; add to it: %s", path, strings.Join(lines, ", "))
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// askServers returns the models of each server; nil: it does not answer.
func askServers(ctx context.Context, servers []Server) [][]string {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	models := make([][]string, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { models[i] = listModels(ctx, s.Address) })
	}
	wg.Wait()
	return models
}

func listModels(ctx context.Context, address string) []string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/v1/models", nil)
	if err != nil {
		return nil
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req) // no proxy: only this machine is meant
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var list struct {
		Data *[]struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, maxListBytes)).Decode(&list)
	if err != nil || resp.StatusCode != http.StatusOK || list.Data == nil {
		return nil
	}
	models := []string{}
	for _, m := range *list.Data {
		if m.ID != "" {
			models = append(models, m.ID)
		}
	}
	return models
}
