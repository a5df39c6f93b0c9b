package demo

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"text/template"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/connection"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/sandbox"
	"github.com/semel-dev/semel/workflowfile"
)

//go:embed billing
var billingFiles embed.FS

// The workflow of the night, and its file.
const (
	workflowName = "nightly_billing"
	workflowFile = "nightly_billing.yaml"
)

// billing is the workflow of the night, and the connections that it uses.
type billing struct {
	definition semel.WorkflowDefinition
	file       *workflowfile.Definition
	config     *connection.Config
}

// newBilling reads the files for one night. Its destinations are at base, and
// its books in dir; said hears what is about to be sent.
func newBilling(n *night, base string, said *announcer) (*billing, error) {
	text, err := template.ParseFS(billingFiles, "billing/semel.yaml")
	if err != nil {
		return nil, err
	}
	var filled bytes.Buffer
	if err := text.Execute(&filled, map[string]any{
		"Tenant": n.tenant(), "Base": base, "Ledger": booksFile, "Timeout": answerWithin, "WriteTimeout": writeTimeout,
		"MaxProcessing": maxProcessing, "VisibleAfter": visibleAfter, "KeyWindow": keyWindow, "Backoff": backoff,
	}); err != nil {
		return nil, err
	}
	config, err := connection.Parse(n.path("semel.yaml"), filled.Bytes())
	if err != nil {
		return nil, err
	}
	workflow, err := billingFiles.ReadFile(path.Join("billing", workflowFile))
	if err != nil {
		return nil, err
	}
	checks := config.Checks()
	checks.File = func(name string) ([]byte, error) { return billingFiles.ReadFile(path.Join("billing", name)) }
	file, problems := workflowfile.Parse(workflowFile, workflow, checks)
	if file == nil {
		return nil, fmt.Errorf("read the workflow: %v", problems)
	}
	b := &billing{file: file, config: config}
	b.definition = file.Workflow(&heard{Config: config, said: said})
	b.definition.Name = n.workflow()
	return b, nil
}

// run asks for the run of a night: its key is the night.
func (b *billing) run(due string) (semel.NewRun, error) {
	inputs, err := json.Marshal(map[string]string{"night": due})
	if err != nil {
		return semel.NewRun{}, err
	}
	r, err := b.file.New(semel.Key(due), inputs)
	r.Workflow = b.definition.Name
	r.Trigger = semel.Trigger{Kind: semel.ByPerson, By: "the demo"}
	return r, err
}

// resolve finds how an operation of this night is sent again. Others may be in
// the same database.
func (b *billing) resolve(o *semel.Operation) (semel.Destination, semel.Contract, error) {
	if o.Scope != semel.ActionScope(b.config.Tenant, o.Request.Connection, o.Request.Action) {
		return nil, semel.Contract{}, errors.New("it is not of this night")
	}
	return b.config.Resolve(o)
}

// scopes of the night's operations at its destinations, by resource.
func scopes(tenant string) map[semel.Scope]sandbox.Resource {
	return map[semel.Scope]sandbox.Resource{
		semel.ActionScope(tenant, connectionOf(sandbox.Charges), "charge"):     sandbox.Charges,
		semel.ActionScope(tenant, connectionOf(sandbox.Transfers), "transfer"): sandbox.Transfers,
		semel.ActionScope(tenant, connectionOf(sandbox.Messages), "send"):      sandbox.Messages,
	}
}

// heard are connections whose first sends the demo hears about.
type heard struct {
	*connection.Config
	said *announcer
}

// Call makes the call of a step; see workflowfile.Actions.
func (h *heard) Call(connection, action string, with map[string]any) (semel.Call, error) {
	call, err := h.Config.Call(connection, action, with)
	if d, ok := call.Destination.(*httpdest.Destination); ok {
		call.Destination = &loud{Destination: d, said: h.said}
	}
	return call, err
}

// loud is a destination that says what it is about to send.
type loud struct {
	*httpdest.Destination
	said *announcer
}

// Send says so, and sends.
func (l *loud) Send(ctx context.Context, s *semel.Send) semel.Event {
	var o order
	if json.Unmarshal(s.Operation.Request.Body, &o) == nil {
		l.said.sending(sandbox.Resource(path.Base(s.Operation.Request.URL)), o.Reference)
	}
	return l.Destination.Send(ctx, s)
}
