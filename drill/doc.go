// Package drill breaks workflows on purpose and counts what happens in the
// world.
package drill
