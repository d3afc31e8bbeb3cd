package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"anamnesis/knowledge_base/userfile"
	"anamnesis/orchestrator/tool/web"
)

// webFile is web.yaml of the program's configuration.
type webFile struct {
	Allow  []string `yaml:"allow"` // addresses that may be fetched although they are not public
	Search struct {
		Engine string `yaml:"engine"`
		URL    string `yaml:"url"`
		Key    string `yaml:"key"` // or ${NAME}: a variable
	} `yaml:"search"`
}

// Web reads the user's settings of the network tools; without a file they are the defaults.
func (s *Service) Web() (web.Options, error) {
	h := s.Home
	o := web.Options{Program: "anamnesis/" + s.o.Version}
	data, err := os.ReadFile(h.Web())
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	fail := func(err error) (web.Options, error) { return o, Usagef("%s: %v", h.Web(), err) }
	if err != nil {
		return fail(err)
	}
	var f webFile
	if err := userfile.Load(h.Web(), data, &f, "the keys are allow, a list of addresses, and search with engine, url and key"); err != nil {
		return o, Usagef("%w", err)
	}
	if o.Allow, err = web.ParseAllow(f.Allow); err != nil {
		return fail(fmt.Errorf("allow: %w", err))
	}
	o.Search = web.Search{Engine: f.Search.Engine, URL: f.Search.URL, Key: f.Search.Key}
	if name, ok := strings.CutPrefix(o.Search.Key, "${"); ok && strings.HasSuffix(name, "}") {
		name = strings.TrimSuffix(name, "}")
		if o.Search.Key = s.getenv(name); o.Search.Key == "" {
			return fail(fmt.Errorf("search: the variable %s is not set", name))
		}
	}
	if err := o.Search.Check(); err != nil {
		return fail(err)
	}
	return o, nil
}
