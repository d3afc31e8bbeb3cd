package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool/spelling"
)

// MaxArgsBytes bounds a call's arguments.
const MaxArgsBytes = 8 << 20

// Registry is a fixed set of tools; the zero Registry has none. It is safe for concurrent use.
// Changed tools need a new one: see With.
type Registry struct {
	order  []Spec
	byName map[string]entry
}

type entry struct {
	tool   Tool
	spec   Spec
	schema *jsonschema.Resolved
}

// NewRegistry checks the tools' specs: names unique and well formed, schemas
// that resolve and describe an object.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{byName: make(map[string]entry, len(tools))}
	for _, t := range tools {
		if err := r.add(t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// With returns a registry that has more tools after its own. A tool that cannot be registered,
// for example because its name is taken, is omitted with an error: a later tool never shadows
// an earlier one.
func (r *Registry) With(tools ...Tool) (*Registry, []error) {
	more := &Registry{order: slices.Clone(r.order), byName: make(map[string]entry, len(r.byName)+len(tools))}
	maps.Copy(more.byName, r.byName)
	var errs []error
	for _, t := range tools {
		if err := more.add(t); err != nil {
			errs = append(errs, err)
		}
	}
	return more, errs
}

// Only returns a registry with those of its tools that keep wants.
func (r *Registry) Only(keep func(Spec) bool) *Registry {
	some := &Registry{byName: make(map[string]entry)}
	for _, s := range r.order {
		if keep(s) {
			some.order = append(some.order, s)
			some.byName[s.Name] = r.byName[s.Name]
		}
	}
	return some
}

// Bind returns a registry in which tools stand at the place of those of the same names. It adds none.
func (r *Registry) Bind(tools ...Tool) *Registry {
	bound := &Registry{order: r.order, byName: maps.Clone(r.byName)}
	for _, t := range tools {
		if e, ok := bound.byName[t.Spec().Name]; ok {
			e.tool = t
			bound.byName[e.spec.Name] = e
		}
	}
	return bound
}

// MaxNameBytes bounds a tool's name.
const MaxNameBytes = 64

// MCPPrefix begins the names of the tools of MCP servers, and of no others.
const MCPPrefix = "mcp__"

func (r *Registry) add(t Tool) error {
	s := t.Spec()
	if s.Name == "" || len(s.Name) > MaxNameBytes || quote.Word(s.Name) != s.Name {
		return fmt.Errorf("register tool %q: the name must be 1 to %d letters, digits, _ or -", s.Name, MaxNameBytes)
	}
	if _, ok := r.byName[s.Name]; ok {
		return fmt.Errorf("register tool %s: the name is taken", s.Name)
	}
	if s.Schema == nil || s.Schema.Type != "object" {
		return fmt.Errorf("register tool %s: the schema must be of type object", s.Name)
	}
	// A copy: resolving writes into the schema.
	resolved, err := s.Schema.CloneSchemas().Resolve(nil)
	if err != nil {
		return fmt.Errorf("register tool %s: schema: %w", s.Name, err)
	}
	r.byName[s.Name] = entry{t, s, resolved}
	r.order = append(r.order, s)
	return nil
}

// Specs lists the tools in the order of registration. The caller owns the
// slice, not the schemas.
func (r *Registry) Specs() []Spec { return slices.Clone(r.order) }

// Spec returns the spec of a tool; false where there is none of that name.
func (r *Registry) Spec(name string) (Spec, bool) {
	e, ok := r.byName[name]
	return e.spec, ok
}

// CallError is a call with unusable arguments or an unknown tool. Its text is shown to the
// model.
type CallError struct {
	Text string
}

func (e *CallError) Error() string { return e.Text }

// Validate finds a call's tool and checks its arguments. It returns them in a canonical form:
// exactly what was checked, duplicate keys resolved to the last, whole numbers written as
// integers. Missing arguments mean {}. The error is a *CallError.
func (r *Registry) Validate(call op.Call) (Tool, json.RawMessage, error) {
	e, ok := r.byName[call.Name]
	if !ok {
		return nil, nil, &CallError{Text: r.unknown(call.Name)}
	}
	refuse := func(format string, args ...any) (Tool, json.RawMessage, error) {
		text := fmt.Sprintf(format, args...)
		return nil, nil, &CallError{Text: fmt.Sprintf("%s was not run: %s", call.Name, text)}
	}
	if len(call.Args) > MaxArgsBytes {
		return refuse("its arguments are %d bytes, at most %d are allowed.", len(call.Args), MaxArgsBytes)
	}
	value, err := decode(call.Args)
	if err != nil {
		return refuse("the arguments are not valid JSON: %v. Send one JSON object: %s", err, outline(e.spec.Schema))
	}
	args, ok := value.(map[string]any)
	if !ok {
		return refuse("the arguments must be a JSON object. Expected: %s", outline(e.spec.Schema))
	}
	if err := e.schema.Validate(args); err != nil {
		fault := quote.Squash(strings.TrimPrefix(err.Error(), "validating root: "))
		fault = quote.Ends(fault, maxFaultBytes, " … (%d bytes left out) … ")
		return refuse("the arguments do not fit the schema: %s. Expected: %s", fault, outline(e.spec.Schema))
	}
	canonical, err := op.PlainJSON(wholeNumbers(args))
	if err != nil {
		return refuse("the arguments cannot be read: %v", err)
	}
	return e.tool, canonical, nil
}

// ErrorResult returns the result of a call that Validate or an approval rejected. It returns
// false for an error that is not about the call.
func ErrorResult(err error) (Result, bool) {
	if errors.As(err, new(*CallError)) || errors.As(err, new(*PathError)) {
		return Result{Text: err.Error(), IsError: true}, true
	}
	return Result{}, false
}

// unknown explains that a tool does not exist, and lists the similar one and all.
func (r *Registry) unknown(name string) string {
	var names []string
	for _, s := range r.order {
		names = append(names, s.Name)
	}
	text := fmt.Sprintf("There is no tool %.64q.", name)
	if near := spelling.Nearest(name, names); near != "" {
		text += fmt.Sprintf(" Did you mean %s?", near)
	}
	return text + " The tools are: " + strings.Join(names, ", ") + "."
}

// Varying is a tool whose effects depend on its arguments.
type Varying interface {
	Tool
	// SpecFor returns the spec of a call with these arguments, which Validate has accepted. It
	// differs from Spec only in ReadOnly.
	SpecFor(args json.RawMessage) Spec
}

// SpecOf returns the spec of one call.
func SpecOf(t Tool, args json.RawMessage) Spec {
	if v, ok := t.(Varying); ok {
		return v.SpecFor(args)
	}
	return t.Spec()
}
