package workflowfile

import "io/fs"

// Restore reads a definition from the text of its [Definition.Workflow], as a
// store keeps it; file is its name in messages. It sets checks.File, and is
// [Parse] otherwise.
func Restore(file string, text []byte, checks Checks) (*Definition, []Problem) {
	workflow, files := unbundle(text)
	checks.File = func(name string) ([]byte, error) {
		data, ok := files[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return data, nil
	}
	return Parse(file, workflow, checks)
}
