package workflowfile

import "github.com/semel-dev/semel"

// Checks are what [Parse] asks its caller about. What a nil hook would have
// told is not checked, and a warning says so.
type Checks struct {
	// Cron reports what is wrong with a cron expression.
	Cron func(text string) error
	// Connection tells about a connection; ok is false where there is none.
	Connection func(name string) (info ConnectionInfo, ok bool)
	// File reads a text that a step names, such as due.sql: a path with slashes
	// below the directory of the workflow file. [Load] sets it.
	File func(name string) ([]byte, error)
}

// ConnectionInfo is what a check knows about a connection.
type ConnectionInfo struct {
	// Contract is what its actions inherit; nil means that they inherit none,
	// and a step has to say its effect.
	Contract *semel.Contract
	// Actions are its actions by name; nil accepts any name.
	Actions map[string]ActionInfo
}

// ActionInfo is what a check knows about one action.
type ActionInfo struct {
	// Read: it has no effect.
	Read bool
	// Contract takes the place of the connection's; nil means the connection's.
	Contract *semel.Contract
	// Required are the members that with must have. Optional are further ones;
	// nil accepts any.
	Required, Optional []string
}

// builtIn returns the actions that need no connection of their name. They work
// on the database that with.at names.
func builtIn(connection string) (map[string]ActionInfo, bool) {
	at := []string{"at"}
	switch connection {
	case "sql":
		return map[string]ActionInfo{"query": {Read: true, Required: at}, "exec": {Required: at}}, true
	case "claim":
		return map[string]ActionInfo{"once": {Required: at}}, true
	}
	return nil, false
}
