package workflowfile

import (
	"bytes"
	_ "embed"
)

//go:embed workflow.schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of a workflow file, for editors. It
// knows the structure; [Parse] also knows the references and types.
func Schema() []byte { return bytes.Clone(schema) }
